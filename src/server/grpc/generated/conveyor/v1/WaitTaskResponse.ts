// Original file: proto/conveyor/v1/task_service.proto

import type { Task as _conveyor_v1_Task, Task__Output as _conveyor_v1_Task__Output } from '../../conveyor/v1/Task.ts';

export interface WaitTaskResponse {
  'task'?: (_conveyor_v1_Task | null);
}

export interface WaitTaskResponse__Output {
  'task': (_conveyor_v1_Task__Output | null);
}
