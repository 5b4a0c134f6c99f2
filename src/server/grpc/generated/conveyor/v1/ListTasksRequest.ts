// Original file: proto/conveyor/v1/task_service.proto

import type { TaskFilter as _conveyor_v1_TaskFilter, TaskFilter__Output as _conveyor_v1_TaskFilter__Output } from '../../conveyor/v1/TaskFilter.ts';

export interface ListTasksRequest {
  'filter'?: (_conveyor_v1_TaskFilter | null);
  'page_size'?: (number);
  'page_token'?: (string);
  'newest_first'?: (boolean);
}

export interface ListTasksRequest__Output {
  'filter': (_conveyor_v1_TaskFilter__Output | null);
  'page_size': (number);
  'page_token': (string);
  'newest_first': (boolean);
}
