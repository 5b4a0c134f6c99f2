// Original file: proto/conveyor/v1/task_service.proto


export interface WatchTasksRequest {
  'from'?: (string);
  'conv_id'?: (string);
  'with_task'?: (boolean);
}

export interface WatchTasksRequest__Output {
  'from': (string);
  'conv_id': (string);
  'with_task': (boolean);
}
