// Original file: proto/conveyor/v1/task_service.proto


export interface CreateTaskRequest {
  'conv_id'?: (string);
  'ref'?: (string);
  'data_json'?: (Buffer | Uint8Array | string);
  '_ref'?: "ref";
}

export interface CreateTaskRequest__Output {
  'conv_id': (string);
  'ref'?: (string);
  'data_json': (Buffer);
  '_ref'?: "ref";
}
