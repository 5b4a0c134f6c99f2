/** All that is hostile, by class. */
import { hostile_access } from './hostile-access.ts'
import { hostile_addresses } from './hostile-addresses.ts'
import { hostile_certificates } from './hostile-certificates.ts'
import { hostile_code } from './hostile-code.ts'
import { hostile_frames } from './hostile-frames.ts'
import { hostile_grpc } from './hostile-grpc.ts'
import { hostile_http } from './hostile-http.ts'
import type { HostileClass } from './hostile-row.ts'

export const hostile_classes: readonly HostileClass[] = [
  ...hostile_http,
  hostile_grpc,
  hostile_frames,
  hostile_access,
  hostile_certificates,
  hostile_addresses,
  hostile_code,
]
