/**
 * The messages on the admin socket: one POST per call, JSON in both directions. Both ends state
 * their file and version and refuse a difference, so that each end may trust the other's shapes.
 */
import { defined } from '../../core/defined.ts'
import { type Fault, fault, isFault, type Mistake } from '../../core/faults.ts'

export interface Endpoint {
  readonly file_id: string
  readonly version: string
}

export interface AdminRequest extends Endpoint {
  readonly verb: string
  readonly args: unknown
}

export interface FaultView {
  readonly code: Fault['code']
  readonly message: string
  readonly mistakes?: readonly string[]
  readonly warnings?: readonly Mistake[]
}

export type AdminResponse = Endpoint & ({ readonly value: unknown } | { readonly fault: FaultView })

/**
 * The maximum size of a request: the files of an import (`export_bytes_max`) take up to twice their
 * size as JSON text.
 */
export const request_bytes_max = 80 * 1024 * 1024

export function faultView(error: unknown): FaultView {
  if (!isFault(error)) {
    const message = error instanceof Error ? error.message : String(error)
    return { code: 'internal_error', message }
  }
  const { code, message, mistakes, warnings } = error
  return { code, message, ...defined({ mistakes, warnings }) }
}

/** Throws `file_held` with a sentence that says what differs and what to do. */
export function checkEndpoint(mine: Endpoint, theirs: Endpoint): void {
  if (theirs.file_id !== mine.file_id) {
    throw fault('file_held', 'the socket belongs to another data file: run the command again')
  }
  if (theirs.version !== mine.version) {
    throw fault(
      'file_held',
      `conveyor ${theirs.version} holds the file and this is ${mine.version}: use that, or stop it`,
    )
  }
}
