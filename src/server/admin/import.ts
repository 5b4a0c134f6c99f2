/**
 * Importing definitions: a file holds one or an array of them, and all are stored or none.
 */
import type { Engine, PutResult } from '../../engine/api.ts'

export interface ImportArgs {
  /** The file's text. */
  readonly text: string
  /** Instead of the definition's own id; only for a file with one definition. */
  readonly id?: string
  readonly moves?: Readonly<Record<string, string>>
  /** New ids for processes of the file and whatever names them. */
  readonly map?: Readonly<Record<string, string>>
}

/** Rejects with `format_error`, or what the engine's `putProcesses` refuses with. */
export function importProcesses(engine: Engine, args: ImportArgs): Promise<PutResult[]> {
  const { text, id, moves, map } = args
  return engine.putProcesses(text, {
    ...(id === undefined ? {} : { conv_id: id }),
    ...(moves === undefined ? {} : { moves }),
    ...(map === undefined ? {} : { map }),
  })
}
