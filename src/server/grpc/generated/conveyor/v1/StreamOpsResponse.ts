// Original file: proto/conveyor/v1/task_service.proto

import type { OpResult as _conveyor_v1_OpResult, OpResult__Output as _conveyor_v1_OpResult__Output } from '../../conveyor/v1/OpResult.ts';
import type { Long } from '@grpc/proto-loader';

export interface StreamOpsResponse {
  'seq'?: (number | string | Long);
  'results'?: (_conveyor_v1_OpResult)[];
  'proc'?: (string);
  'description'?: (string);
}

export interface StreamOpsResponse__Output {
  'seq': (string);
  'results': (_conveyor_v1_OpResult__Output)[];
  'proc': (string);
  'description': (string);
}
