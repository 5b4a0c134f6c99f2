/**
 * Keys are byte strings, so a buffer takes and gives them as Latin-1. Node's buffers have these two
 * methods, and its types do not.
 */
export interface KeyBytes {
  latin1Write(key: string, at: number): number
  latin1Slice(from: number, to: number): string
}
