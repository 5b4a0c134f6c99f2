// Original file: proto/conveyor/v1/task_service.proto


export interface ModifyTaskResponse {
  'ref'?: (string);
  'obj_id'?: (string);
  '_ref'?: "ref";
}

export interface ModifyTaskResponse__Output {
  'ref'?: (string);
  'obj_id': (string);
  '_ref'?: "ref";
}
