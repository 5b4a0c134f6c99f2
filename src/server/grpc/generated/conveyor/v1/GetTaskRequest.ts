// Original file: proto/conveyor/v1/task_service.proto


export interface GetTaskRequest {
  'conv_id'?: (string);
  'ref'?: (string);
  'obj_id'?: (string);
  'with_history'?: (boolean);
  'target'?: "ref"|"obj_id";
}

export interface GetTaskRequest__Output {
  'conv_id': (string);
  'ref'?: (string);
  'obj_id'?: (string);
  'with_history': (boolean);
  'target'?: "ref"|"obj_id";
}
