/**
 * The flags that filter tasks, for `task list` and for work on many tasks. They have no environment
 * variables, which could change what a command touches. The engine checks the names.
 */
import { isObject, parseJson, stringifyJson } from '../../codec/json.ts'
import { statuses } from '../../codec/task-record.ts'
import { defined } from '../../core/defined.ts'
import { isFault } from '../../core/faults.ts'
import { filter_times } from '../../engine/api/search-api.ts'
import type { SentFilter } from '../../task-operations/searches.ts'
import { usageError } from '../exit-codes.ts'
import type { Io } from '../io.ts'
import { type Flag, flag, type Given, oneOf, text, timeMs } from '../verb.ts'

const flagOf = (time: (typeof filter_times)[number]): string =>
  time.replace('_ms', '').replace('_', '-')

const status_words: readonly NonNullable<SentFilter['status']>[] = [
  ...statuses,
  ...(['live', 'ended', 'any'] as const),
]

export const filterFlags: readonly Flag[] = [
  flag('node N', 'in this node, by its id or title'),
  flag('status S', 'with this status: failed, …; also live, ended, any'),
  flag('ref-prefix R', 'whose ref begins so'),
  ...filter_times.map((time) => ({ name: flagOf(time), value: 'TIME', says: says(flagOf(time)) })),
  flag('where JSON', 'whose data is so: {"amount":{"gte":100},"paid":true}'),
].map((flag) => ({ ...flag, no_env: true }))

function says(name: string): string {
  if (name === 'due-before') return 'with a timer that fires before'
  const [what, end] = name.split('-')
  return `${what} ${end === 'since' ? 'then or later' : 'before then'}`
}

export const filter_notes = [
  'TIME is a UTC time such as 2026-01-31T08:05:00Z, milliseconds since 1970, or 90s, 15m, 24h, 7d',
  'ago; with + that long from now. The paths and comparisons of --where: src/engine/search.',
]

/** The filter of the flags, without the process. Throws a usage fault. */
export function filterOf(given: Given, io: Io): SentFilter {
  const node_id = text(given, 'node')
  const status = oneOf('--status', text(given, 'status'), status_words)
  const ref_prefix = text(given, 'ref-prefix')
  const where = text(given, 'where')
  const filter: Record<string, unknown> = {}
  for (const name of filter_times) {
    const time = text(given, flagOf(name))
    if (time !== undefined) filter[name] = timeMs(`--${flagOf(name)}`, time, io.clock.now_ms())
  }
  return {
    ...filter,
    ...defined({ node_id, status, ref_prefix }),
    ...(where === undefined ? {} : { where_text: whereText(where) }),
  }
}

function whereText(given: string): string {
  const wrong = `quote a JSON object, such as --where '{"amount":{"gte":100}}'`
  try {
    const where = parseJson(given)
    if (isObject(where)) return stringifyJson(where)
  } catch (error) {
    if (isFault(error)) throw usageError(`--where is ${error.message}; ${wrong}`)
    throw error
  }
  throw usageError(`--where is not a JSON object; ${wrong}`)
}
