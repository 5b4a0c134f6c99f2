/**
 * The port of a backup target: named objects that are written once and never changed. A name has
 * the parts of a path, separated by `/`. Each call rejects with an error of the system or of the
 * protocol; the caller tries again. Implementation: folder-target.
 */
export interface BackupTarget {
  /** The text by which operators know it, without credentials. */
  readonly says: string
  /** All objects whose names begin with `prefix`, in any order. */
  list(prefix: string): Promise<TargetObject[]>
  /** Undefined if there is none of this name. */
  read(name: string): Promise<Buffer | undefined>
  has(name: string): Promise<boolean>
  /** Durable when it resolves; false, without a change, if the name is taken. */
  create(name: string, bytes: Buffer): Promise<boolean>
  remove(name: string): Promise<void>
}

export interface TargetObject {
  readonly name: string
  readonly bytes: number
}
