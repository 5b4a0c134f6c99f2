// Original file: proto/conveyor/v1/task_service.proto


export interface StatusDetails {
  'tag'?: (string);
  'description'?: (string);
}

export interface StatusDetails__Output {
  'tag': (string);
  'description': (string);
}
