// Original file: proto/conveyor/v1/task_service.proto

import type { Long } from '@grpc/proto-loader';

export interface HistoryEntry {
  'node_id'?: (string);
  'at_ms'?: (number | string | Long);
  'why'?: (string);
  'by'?: (string);
  'tag'?: (string);
}

export interface HistoryEntry__Output {
  'node_id': (string);
  'at_ms': (string);
  'why': (string);
  'by': (string);
  'tag': (string);
}
