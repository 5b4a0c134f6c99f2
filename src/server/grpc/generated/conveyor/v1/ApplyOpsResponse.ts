// Original file: proto/conveyor/v1/task_service.proto

import type { OpResult as _conveyor_v1_OpResult, OpResult__Output as _conveyor_v1_OpResult__Output } from '../../conveyor/v1/OpResult.ts';

export interface ApplyOpsResponse {
  'results'?: (_conveyor_v1_OpResult)[];
}

export interface ApplyOpsResponse__Output {
  'results': (_conveyor_v1_OpResult__Output)[];
}
