// Original file: proto/conveyor/v1/task_service.proto


export interface CancelTaskResponse {
  'ref'?: (string);
  'obj_id'?: (string);
  '_ref'?: "ref";
}

export interface CancelTaskResponse__Output {
  'ref'?: (string);
  'obj_id': (string);
  '_ref'?: "ref";
}
