// Original file: proto/conveyor/v1/task_service.proto


export interface CreateTaskRequest {
  'conv_id'?: (string);
  'ref'?: (string);
  'data_json'?: (Buffer | Uint8Array | string);
  'request_key'?: (string);
  '_ref'?: "ref";
}

export interface CreateTaskRequest__Output {
  'conv_id': (string);
  'ref'?: (string);
  'data_json': (Buffer);
  'request_key': (string);
  '_ref'?: "ref";
}
