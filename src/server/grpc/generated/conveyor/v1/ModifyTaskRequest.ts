// Original file: proto/conveyor/v1/task_service.proto


export interface ModifyTaskRequest {
  'conv_id'?: (string);
  'ref'?: (string);
  'obj_id'?: (string);
  'data_json'?: (Buffer | Uint8Array | string);
  'is_sync'?: (boolean);
  'node_id'?: (string);
  'request_key'?: (string);
  'target'?: "ref"|"obj_id";
}

export interface ModifyTaskRequest__Output {
  'conv_id': (string);
  'ref'?: (string);
  'obj_id'?: (string);
  'data_json': (Buffer);
  'is_sync': (boolean);
  'node_id': (string);
  'request_key': (string);
  'target'?: "ref"|"obj_id";
}
