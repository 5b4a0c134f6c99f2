// Original file: proto/conveyor/v1/task_service.proto

import type { TaskCounts as _conveyor_v1_TaskCounts, TaskCounts__Output as _conveyor_v1_TaskCounts__Output } from '../../conveyor/v1/TaskCounts.ts';
import type { CountRow as _conveyor_v1_CountRow, CountRow__Output as _conveyor_v1_CountRow__Output } from '../../conveyor/v1/CountRow.ts';

export interface CountTasksResponse {
  'counts'?: (_conveyor_v1_TaskCounts | null);
  'rows'?: (_conveyor_v1_CountRow)[];
}

export interface CountTasksResponse__Output {
  'counts': (_conveyor_v1_TaskCounts__Output | null);
  'rows': (_conveyor_v1_CountRow__Output)[];
}
