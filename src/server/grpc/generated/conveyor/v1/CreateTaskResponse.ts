// Original file: proto/conveyor/v1/task_service.proto


export interface CreateTaskResponse {
  'ref'?: (string);
  'obj_id'?: (string);
  '_ref'?: "ref";
}

export interface CreateTaskResponse__Output {
  'ref'?: (string);
  'obj_id': (string);
  '_ref'?: "ref";
}
