// Original file: proto/conveyor/v1/task_service.proto

import type { StatusDetails as _conveyor_v1_StatusDetails, StatusDetails__Output as _conveyor_v1_StatusDetails__Output } from '../../conveyor/v1/StatusDetails.ts';
import type { HistoryEntry as _conveyor_v1_HistoryEntry, HistoryEntry__Output as _conveyor_v1_HistoryEntry__Output } from '../../conveyor/v1/HistoryEntry.ts';
import type { Long } from '@grpc/proto-loader';

export interface Task {
  'obj_id'?: (string);
  'conv_id'?: (string);
  'ref'?: (string);
  'status'?: (string);
  'user_id'?: (string);
  'create_time_ms'?: (number | string | Long);
  'change_time_ms'?: (number | string | Long);
  'node_id'?: (string);
  'node_prev_id'?: (string);
  'data_json'?: (Buffer | Uint8Array | string);
  'status_details'?: (_conveyor_v1_StatusDetails | null);
  'history'?: (_conveyor_v1_HistoryEntry)[];
  '_ref'?: "ref";
}

export interface Task__Output {
  'obj_id': (string);
  'conv_id': (string);
  'ref'?: (string);
  'status': (string);
  'user_id': (string);
  'create_time_ms': (string);
  'change_time_ms': (string);
  'node_id': (string);
  'node_prev_id': (string);
  'data_json': (Buffer);
  'status_details': (_conveyor_v1_StatusDetails__Output | null);
  'history': (_conveyor_v1_HistoryEntry__Output)[];
  '_ref'?: "ref";
}
