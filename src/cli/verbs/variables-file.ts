/**
 * The file of `serve --variables`: a JSON object with a value for each name. It is read again when
 * it changes; one that cannot be used leaves the values before in use and is reported once. No
 * message quotes from the file, because its values may be secrets.
 */
import { isObject, parseJson } from '../../codec/json.ts'
import { isFault } from '../../core/faults.ts'
import { poll } from '../../core/poll.ts'
import type { Engine } from '../../engine/api.ts'
import type { GivenVariables } from '../../engine/variables.ts'
import { usageError } from '../exit-codes.ts'
import { decodeText, type Io, readInput } from '../io.ts'
import { type Given, text } from '../verb.ts'

export interface VariablesFile {
  readonly first: GivenVariables
  /** Gives the engine what the file holds from now on, until the returned function is called. */
  watch(engine: Engine, onNotice: (sentence: string) => void): () => void
}

/** Undefined without the flag. Rejects with a usage fault for a file that cannot be used. */
export async function variablesOf(given: Given, io: Io): Promise<VariablesFile | undefined> {
  const path = text(given, 'variables')
  if (path === undefined) return undefined
  const bytes = await readInput(path, io)
  return {
    first: readVariables(path, bytes),
    watch: (engine, onNotice) =>
      poll<Buffer>({
        clock: io.clock,
        every_ms: engine.limits.variables_reload_ms,
        first: bytes,
        // Standard input is read once.
        read: async () => (path === '-' ? bytes : readInput(path, io)),
        isSame: (one, other) => one.equals(other),
        use: (changed) => engine.setVariables(readVariables(path, changed)),
        onBroken: ({ message }) => onNotice(`${message}; the variables stay as they were`),
      }),
  }
}

function readVariables(path: string, bytes: Buffer): GivenVariables {
  let value: unknown
  try {
    value = parseJson(decodeText(bytes, 'the file'))
  } catch (error) {
    if (!isFault(error)) throw error
    throw usageError(`cannot use ${path}: ${error.message}`)
  }
  if (isObject(value)) return value
  throw usageError(`cannot use ${path}: a JSON object was expected`)
}
