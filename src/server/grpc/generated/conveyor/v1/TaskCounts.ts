// Original file: proto/conveyor/v1/task_service.proto

import type { Long } from '@grpc/proto-loader';

export interface TaskCounts {
  'total'?: (number | string | Long);
  'processing'?: (number | string | Long);
  'delayed'?: (number | string | Long);
  'failed'?: (number | string | Long);
  'processed'?: (number | string | Long);
  'canceled'?: (number | string | Long);
  '_processing'?: "processing";
  '_delayed'?: "delayed";
  '_failed'?: "failed";
  '_processed'?: "processed";
  '_canceled'?: "canceled";
}

export interface TaskCounts__Output {
  'total': (string);
  'processing'?: (string);
  'delayed'?: (string);
  'failed'?: (string);
  'processed'?: (string);
  'canceled'?: (string);
  '_processing'?: "processing";
  '_delayed'?: "delayed";
  '_failed'?: "failed";
  '_processed'?: "processed";
  '_canceled'?: "canceled";
}
