// Original file: proto/conveyor/v1/task_service.proto

import type { Task as _conveyor_v1_Task, Task__Output as _conveyor_v1_Task__Output } from '../../conveyor/v1/Task.ts';
import type { Long } from '@grpc/proto-loader';

export interface WatchTasksResponse {
  'position'?: (string);
  'conv_id'?: (string);
  'obj_id'?: (string);
  'ref'?: (string);
  'status'?: (string);
  'node_id'?: (string);
  'at_ms'?: (number | string | Long);
  'task'?: (_conveyor_v1_Task | null);
  '_ref'?: "ref";
}

export interface WatchTasksResponse__Output {
  'position': (string);
  'conv_id': (string);
  'obj_id': (string);
  'ref'?: (string);
  'status': (string);
  'node_id': (string);
  'at_ms': (string);
  'task': (_conveyor_v1_Task__Output | null);
  '_ref'?: "ref";
}
