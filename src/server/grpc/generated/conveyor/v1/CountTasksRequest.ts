// Original file: proto/conveyor/v1/task_service.proto


export interface CountTasksRequest {
  'conv_id'?: (string);
  'node_id'?: (string);
  'status'?: (string);
}

export interface CountTasksRequest__Output {
  'conv_id': (string);
  'node_id': (string);
  'status': (string);
}
