/**
 * The names of the objects in a backup target. They say what is inside, so a listing is the index:
 *
 *     00000003/begin                          a tenure: one run of one process with the data file
 *     00000003/frames-FIRST-LAST-MS           frames of the commit log, one after the other
 *     00000003/snapshot-SEQ-MS/chunk-00000001 the state at one position, in key order
 *     00000003/snapshot-SEQ-MS/end            written last: the snapshot is complete
 *
 * Positions are decimal numbers of 16 digits, times milliseconds of 14. A time is a label: the
 * clock at which these frames were the newest. Pure.
 */
export interface FramesName {
  readonly name: string
  readonly bytes: number
  readonly first_seq: number
  readonly last_seq: number
  readonly at_ms: number
}

export interface SnapshotName {
  /** The prefix of its objects, without `/`. */
  readonly name: string
  readonly seq: number
  readonly at_ms: number
}

const digits = (n: number, length: number): string => String(n).padStart(length, '0')

export const tenureName = (tenure: number): string => digits(tenure, 8)
export const beginName = (tenure: number): string => `${tenureName(tenure)}/begin`

export function framesName(
  tenure: number,
  { first_seq, last_seq, at_ms }: Omit<FramesName, 'name' | 'bytes'>,
): string {
  const ends = `${digits(first_seq, 16)}-${digits(last_seq, 16)}`
  return `${tenureName(tenure)}/frames-${ends}-${digits(at_ms, 14)}`
}

export function snapshotName(tenure: number, { seq, at_ms }: Omit<SnapshotName, 'name'>): string {
  return `${tenureName(tenure)}/snapshot-${digits(seq, 16)}-${digits(at_ms, 14)}`
}

export const chunkName = (snapshot: string, chunk: number): string =>
  `${snapshot}/chunk-${digits(chunk, 8)}`
export const endName = (snapshot: string): string => `${snapshot}/end`

/** Undefined for a name of another program. */
export function tenureOf(name: string): number | undefined {
  const [, tenure] = /^([0-9]{8})\//.exec(name) ?? []
  return tenure === undefined ? undefined : Number(tenure)
}

export function framesOf(name: string, bytes: number): FramesName | undefined {
  const found = /^[0-9]{8}\/frames-([0-9]{16})-([0-9]{16})-([0-9]{14})$/.exec(name)
  if (found === null) return undefined
  const [first_seq, last_seq, at_ms] = found.slice(1).map(Number) as [number, number, number]
  return { name, bytes, first_seq, last_seq, at_ms }
}

/** Of the object that completes a snapshot. */
export function snapshotOf(end_name: string): SnapshotName | undefined {
  const found = /^([0-9]{8}\/snapshot-([0-9]{16})-([0-9]{14}))\/end$/.exec(end_name)
  if (found === null) return undefined
  const [, name = '', seq, at_ms] = found
  return { name, seq: Number(seq), at_ms: Number(at_ms) }
}
