// Original file: proto/conveyor/v1/task_service.proto


export interface RetryTaskResponse {
  'ref'?: (string);
  'obj_id'?: (string);
  '_ref'?: "ref";
}

export interface RetryTaskResponse__Output {
  'ref'?: (string);
  'obj_id': (string);
  '_ref'?: "ref";
}
