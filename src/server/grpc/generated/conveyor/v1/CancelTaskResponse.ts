// Original file: proto/conveyor/v1/task_service.proto

import type { Task as _conveyor_v1_Task, Task__Output as _conveyor_v1_Task__Output } from '../../conveyor/v1/Task.ts';

export interface CancelTaskResponse {
  'ref'?: (string);
  'obj_id'?: (string);
  'task'?: (_conveyor_v1_Task | null);
  'was_status'?: (string);
  'was_node_id'?: (string);
  '_ref'?: "ref";
}

export interface CancelTaskResponse__Output {
  'ref'?: (string);
  'obj_id': (string);
  'task': (_conveyor_v1_Task__Output | null);
  'was_status': (string);
  'was_node_id': (string);
  '_ref'?: "ref";
}
