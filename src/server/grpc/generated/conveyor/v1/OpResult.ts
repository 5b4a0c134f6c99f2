// Original file: proto/conveyor/v1/task_service.proto

import type { Task as _conveyor_v1_Task, Task__Output as _conveyor_v1_Task__Output } from '../../conveyor/v1/Task.ts';

export interface OpResult {
  'id'?: (string);
  'ref'?: (string);
  'obj_id'?: (string);
  'proc'?: (string);
  'description'?: (string);
  'task'?: (_conveyor_v1_Task | null);
  '_ref'?: "ref";
}

export interface OpResult__Output {
  'id': (string);
  'ref'?: (string);
  'obj_id': (string);
  'proc': (string);
  'description': (string);
  'task': (_conveyor_v1_Task__Output | null);
  '_ref'?: "ref";
}
