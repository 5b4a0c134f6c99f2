/**
 * A message that its caller compressed. It is bounded as any other, and as it grows: what a few
 * bytes become is not known before.
 */
import { constants } from 'node:buffer'
import { gunzip, inflate as unzip } from 'node:zlib'
import { status } from '@grpc/grpc-js'
import type { FailedCall } from './status.ts'

type OnInflated = (failed: FailedCall | undefined, plain: Buffer) => void

/** `encoding`: the header `grpc-encoding`. */
export function inflate(
  message: Buffer,
  encoding: string,
  bytes_max: number,
  onInflated: OnInflated,
): void {
  const run = encoding === 'gzip' ? gunzip : encoding === 'deflate' ? unzip : undefined
  if (run === undefined) {
    const details = `Received message compressed with unsupported encoding "${encoding}"`
    process.nextTick(onInflated, { code: status.UNIMPLEMENTED, details }, message)
    return
  }
  const maxOutputLength = Math.max(1, Math.min(bytes_max, constants.MAX_LENGTH))
  run(message, { maxOutputLength }, (error, plain) => {
    onInflated(error === null ? undefined : failureOf(error, bytes_max), plain)
  })
}

function failureOf({ code }: NodeJS.ErrnoException, bytes_max: number): FailedCall {
  if (code !== 'ERR_BUFFER_TOO_LARGE') {
    return { code: status.INTERNAL, details: 'Failed to decompress message' }
  }
  const details = `Received message that decompresses to a size larger than ${bytes_max}`
  return { code: status.RESOURCE_EXHAUSTED, details }
}
