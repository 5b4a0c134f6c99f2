// Original file: proto/conveyor/v1/task_service.proto

import type { Long } from '@grpc/proto-loader';

export interface TaskFilter {
  'conv_id'?: (string);
  'node_id'?: (string);
  'status'?: (string);
  'ref_prefix'?: (string);
  'created_since_ms'?: (number | string | Long);
  'created_until_ms'?: (number | string | Long);
  'changed_since_ms'?: (number | string | Long);
  'changed_until_ms'?: (number | string | Long);
  'ended_since_ms'?: (number | string | Long);
  'ended_until_ms'?: (number | string | Long);
  'due_before_ms'?: (number | string | Long);
  'where_json'?: (Buffer | Uint8Array | string);
  '_created_since_ms'?: "created_since_ms";
  '_created_until_ms'?: "created_until_ms";
  '_changed_since_ms'?: "changed_since_ms";
  '_changed_until_ms'?: "changed_until_ms";
  '_ended_since_ms'?: "ended_since_ms";
  '_ended_until_ms'?: "ended_until_ms";
  '_due_before_ms'?: "due_before_ms";
}

export interface TaskFilter__Output {
  'conv_id': (string);
  'node_id': (string);
  'status': (string);
  'ref_prefix': (string);
  'created_since_ms'?: (string);
  'created_until_ms'?: (string);
  'changed_since_ms'?: (string);
  'changed_until_ms'?: (string);
  'ended_since_ms'?: (string);
  'ended_until_ms'?: (string);
  'due_before_ms'?: (string);
  'where_json': (Buffer);
  '_created_since_ms'?: "created_since_ms";
  '_created_until_ms'?: "created_until_ms";
  '_changed_since_ms'?: "changed_since_ms";
  '_changed_until_ms'?: "changed_until_ms";
  '_ended_since_ms'?: "ended_since_ms";
  '_ended_until_ms'?: "ended_until_ms";
  '_due_before_ms'?: "due_before_ms";
}
