/**
 * The file of `serve --variables`: a JSON object with a value for each name. It is read again when
 * it changes; one that cannot be used leaves the values before in use and is reported once. No
 * message quotes from the file, because its values may be secrets. Standard input and a pipe are
 * read once.
 */
import { constants, createReadStream } from 'node:fs'
import { open, stat } from 'node:fs/promises'
import { isObject, parseJson } from '../../codec/json.ts'
import type { Emit } from '../../core/events.ts'
import { isFault } from '../../core/faults.ts'
import { poll } from '../../core/poll.ts'
import type { Engine } from '../../engine/api/engine-api.ts'
import type { GivenVariables } from '../../engine/api/process-api.ts'
import { usageError } from '../exit-codes.ts'
import { decodeText, type Io, readAll, unreadable } from '../io.ts'
import { type Given, text } from '../verb.ts'

export interface VariablesFile {
  readonly first: GivenVariables
  /** Gives the engine what the file holds from now on, until the returned function is called. */
  watch(engine: Engine, emit: Emit): () => void
}

/** Undefined without the flag. Rejects with a usage fault for a file that cannot be used. */
export async function variablesOf(given: Given, io: Io): Promise<VariablesFile | undefined> {
  const path = text(given, 'variables')
  if (path === undefined) return undefined
  const is_file = path !== '-' && (await isFile(path))
  const bytes = await (is_file ? readFileAt(path) : readStream(path, io))
  return {
    first: readVariables(path, bytes),
    watch: (engine, emit) =>
      poll<Buffer>({
        clock: io.clock,
        every_ms: engine.limits.variables_reload_ms,
        first: bytes,
        read: async () => (is_file ? readFileAt(path) : bytes),
        isSame: (one, other) => one.equals(other),
        use: (changed) => engine.setVariables(readVariables(path, changed)),
        onBroken: ({ message }) => emit('variables_unusable', { error: message }),
      }),
  }
}

const file_bytes_max = 16 * 1024 * 1024

async function isFile(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isFile()
  } catch (error) {
    throw unreadable(path, error)
  }
}

async function readStream(path: string, io: Io): Promise<Buffer> {
  const stream = path === '-' ? io.stdin : createReadStream(path)
  try {
    return await readAll(stream as AsyncIterable<Uint8Array>, file_bytes_max)
  } catch (error) {
    throw unreadable(path, error)
  }
}

/** Does not block, even if a pipe or device has replaced the file. */
async function readFileAt(path: string): Promise<Buffer> {
  try {
    const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
    try {
      const found = await file.stat()
      if (!found.isFile()) throw usageError('it is no file')
      if (found.size > file_bytes_max) throw usageError(`more than ${file_bytes_max} bytes`)
      return await file.readFile()
    } finally {
      await file.close()
    }
  } catch (error) {
    throw unreadable(path, error)
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
