/**
 * The call that imports a file, or only checks it: both run the same transaction, which a check
 * rolls back. Mistakes name their nodes.
 */
import { readExport } from '../../../files/read-export.ts'
import { export_bytes_max, nodes_max } from '../../../process/definition-limits.ts'
import { quoted } from '../../../process/report.ts'
import {
  badRequest,
  type CallRow,
  flagOf,
  idOf,
  input_bytes_max,
  inputOf,
  namedIn,
  objectOf,
  optional,
  textOf,
} from './call.ts'

const name_chars_max = 255

export const importCall: CallRow<'import'> = {
  right: 'administer',
  input_bytes_max: Math.ceil((export_bytes_max * 4) / 3) + input_bytes_max,
  acts: (input) => (isLook(input) ? undefined : namedIn(input)),
  async run({ engine }, given) {
    const input = inputOf(given, ['name', 'content_base64', 'conv_id', 'moves', 'store'])
    const name = textOf('name', input.name, name_chars_max)
    const bytes = bytesOf(input.content_base64)
    const options = {
      ...optional('conv_id', input.conv_id, idOf),
      ...optional('moves', input.moves, movesOf),
    }
    if (input.store === undefined) throw badRequest('store is neither true nor false')
    const is_done = flagOf('store', input.store)
    const files = await readExport([{ name, chunks: [bytes] }])
    return {
      result: await engine.processes.importFiles(files, { ...options, dry_run: !is_done }),
      is_done,
    }
  },
}

function isLook(input: unknown): boolean {
  return (input as { readonly store?: unknown } | null)?.store !== true
}

const base64_pattern = /^[A-Za-z0-9+/]*={0,2}$/

function bytesOf(value: unknown): Buffer {
  const is_base64 =
    typeof value === 'string' && value.length % 4 === 0 && base64_pattern.test(value)
  if (is_base64) return Buffer.from(value, 'base64')
  throw badRequest('content_base64 is no text in base64')
}

function movesOf(name: string, value: unknown): Readonly<Record<string, string>> {
  const moves = Object.entries(objectOf(name, value))
  if (moves.length > nodes_max) throw badRequest(`${name} is of more than ${nodes_max} nodes`)
  return Object.fromEntries(
    moves.map(([from, to]) => [from, idOf(`${name} of ${quoted(from)}`, to)]),
  )
}
