// Original file: proto/conveyor/v1/task_service.proto

import type { Op as _conveyor_v1_Op, Op__Output as _conveyor_v1_Op__Output } from '../../conveyor/v1/Op.ts';
import type { Long } from '@grpc/proto-loader';

export interface StreamOpsRequest {
  'seq'?: (number | string | Long);
  'ops'?: (_conveyor_v1_Op)[];
  'request_key'?: (string);
}

export interface StreamOpsRequest__Output {
  'seq': (string);
  'ops': (_conveyor_v1_Op__Output)[];
  'request_key': (string);
}
