// Original file: proto/conveyor/v1/task_service.proto

import type { Task as _conveyor_v1_Task, Task__Output as _conveyor_v1_Task__Output } from '../../conveyor/v1/Task.ts';
import type { Long } from '@grpc/proto-loader';

export interface ListTasksResponse {
  'tasks'?: (_conveyor_v1_Task)[];
  'next_page_token'?: (string);
  'scanned'?: (number);
  'sorted_by'?: (string);
  'reached_ms'?: (number | string | Long);
  'damaged'?: (string)[];
  '_reached_ms'?: "reached_ms";
}

export interface ListTasksResponse__Output {
  'tasks': (_conveyor_v1_Task__Output)[];
  'next_page_token': (string);
  'scanned': (number);
  'sorted_by': (string);
  'reached_ms'?: (string);
  'damaged': (string)[];
  '_reached_ms'?: "reached_ms";
}
