/** The options of continuous backup. */
export interface BackupOptions {
  /** Frames are shipped within this time; default 1,000. */
  readonly lag_ms?: number
  /** Or once there are as many bytes; default 1 MiB. */
  readonly part_bytes?: number
  /** What waits for the target in memory; more is dropped, and a snapshot follows. 64 MiB. */
  readonly waiting_bytes_max?: number
  /** No snapshot for fewer bytes of frames after the last one; default 64 MiB. */
  readonly snapshot_bytes_min?: number
  /** Of a snapshot; default 16 MiB. */
  readonly bytes_per_s_max?: number
  /** After a failure; doubles up to 30 times this; default 1,000. */
  readonly retry_ms?: number
  /** A close waits so long for the target; default 2,000. */
  readonly close_ms_max?: number
}

export const backup_defaults: Required<BackupOptions> = {
  lag_ms: 1_000,
  part_bytes: 1024 * 1024,
  waiting_bytes_max: 64 * 1024 * 1024,
  snapshot_bytes_min: 64 * 1024 * 1024,
  bytes_per_s_max: 16 * 1024 * 1024,
  retry_ms: 1_000,
  close_ms_max: 2_000,
}
