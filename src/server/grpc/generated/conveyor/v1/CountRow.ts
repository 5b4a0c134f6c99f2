// Original file: proto/conveyor/v1/task_service.proto

import type { TaskCounts as _conveyor_v1_TaskCounts, TaskCounts__Output as _conveyor_v1_TaskCounts__Output } from '../../conveyor/v1/TaskCounts.ts';

export interface CountRow {
  'conv_id'?: (string);
  'title'?: (string);
  'node_id'?: (string);
  'counts'?: (_conveyor_v1_TaskCounts | null);
}

export interface CountRow__Output {
  'conv_id': (string);
  'title': (string);
  'node_id': (string);
  'counts': (_conveyor_v1_TaskCounts__Output | null);
}
