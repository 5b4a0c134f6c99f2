// Original file: proto/conveyor/v1/task_service.proto


export interface RetryTaskRequest {
  'conv_id'?: (string);
  'ref'?: (string);
  'obj_id'?: (string);
  'node_id'?: (string);
  'target'?: "ref"|"obj_id";
}

export interface RetryTaskRequest__Output {
  'conv_id': (string);
  'ref'?: (string);
  'obj_id'?: (string);
  'node_id': (string);
  'target'?: "ref"|"obj_id";
}
