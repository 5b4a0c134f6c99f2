// Original file: proto/conveyor/v1/task_service.proto

import type { CreateTaskRequest as _conveyor_v1_CreateTaskRequest, CreateTaskRequest__Output as _conveyor_v1_CreateTaskRequest__Output } from '../../conveyor/v1/CreateTaskRequest.ts';
import type { ModifyTaskRequest as _conveyor_v1_ModifyTaskRequest, ModifyTaskRequest__Output as _conveyor_v1_ModifyTaskRequest__Output } from '../../conveyor/v1/ModifyTaskRequest.ts';
import type { GetTaskRequest as _conveyor_v1_GetTaskRequest, GetTaskRequest__Output as _conveyor_v1_GetTaskRequest__Output } from '../../conveyor/v1/GetTaskRequest.ts';

export interface Op {
  'id'?: (string);
  'create'?: (_conveyor_v1_CreateTaskRequest | null);
  'modify'?: (_conveyor_v1_ModifyTaskRequest | null);
  'show'?: (_conveyor_v1_GetTaskRequest | null);
  'kind'?: "create"|"modify"|"show";
}

export interface Op__Output {
  'id': (string);
  'create'?: (_conveyor_v1_CreateTaskRequest__Output | null);
  'modify'?: (_conveyor_v1_ModifyTaskRequest__Output | null);
  'show'?: (_conveyor_v1_GetTaskRequest__Output | null);
  'kind'?: "create"|"modify"|"show";
}
