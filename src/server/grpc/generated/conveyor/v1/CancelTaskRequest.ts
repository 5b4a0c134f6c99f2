// Original file: proto/conveyor/v1/task_service.proto


export interface CancelTaskRequest {
  'conv_id'?: (string);
  'ref'?: (string);
  'obj_id'?: (string);
  'target'?: "ref"|"obj_id";
}

export interface CancelTaskRequest__Output {
  'conv_id': (string);
  'ref'?: (string);
  'obj_id'?: (string);
  'target'?: "ref"|"obj_id";
}
