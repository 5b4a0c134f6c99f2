/**
 * The embedder's handlers by name: a node title or logic type, alone or with a process. They live
 * in memory; jobs wait until the embedder registers them at each start. A throw or timeout is a
 * hardware failure (retryable), a return value other than a plain JSON object a software failure
 * (final).
 */
import { levels_around_data } from '../../codec/json.ts'
import { processKey } from '../../codec/keys.ts'
import { docOfPlain, type PlainBounds, plainBounds } from '../../codec/plain-value.ts'
import { decodeRecord, type ProcessRecord } from '../../codec/records.ts'
import type { Clock } from '../../core/clock.ts'
import { isFault } from '../../core/faults.ts'
import type { Limits } from '../../core/limits.ts'
import type { GraphNode } from '../../process/graph.ts'
import type { JobOutcome } from '../../process/logic.ts'
import type { View } from '../../store/store.ts'
import type { GivenHandlers, Handler, HandlerOptions } from '../api/handler-api.ts'
import { convIdFrom, convIdOf } from '../transactions/stages.ts'
import type { Job } from './job-dispatcher.ts'

export interface Handlers {
  add(name: string, handler: Handler, options?: HandlerOptions): () => void
  /** The most specific handler of a title or type in a process. */
  nameFor(view: View, conv_id: string, title: string): string | undefined
  nameIn(view: View, conv_id: string, node: GraphNode): string | undefined
  /** Handlers named for a process, by id or alias. */
  namesOf(view: View, conv_id: string): string[]
  /** Whether a definition may use a logic type. An alias may be set later, so each counts. */
  mayRun(name: string, conv_id: string | undefined): boolean
  isEmpty(): boolean
  count(): number
  find(name: string): Required<HandlerOptions> | undefined
  /** Never rejects. Resolves within the handler's time limit, or once an aborted job answers. */
  run(name: string, job: Job): Promise<JobOutcome>
}

interface Registered extends Required<HandlerOptions> {
  readonly handler: Handler
}

interface Scopes {
  everywhere: string | undefined
  readonly by_process: Map<string, string>
  readonly by_alias: Map<string, string>
}

/** Whether the alias is the process's, of no stage or of its own. */
function isNamed(view: View, alias: string, conv_id: string): boolean {
  if (convIdOf(view, alias) === conv_id) return true
  const bytes = view.get(processKey(conv_id))
  const { stage_id } = bytes === undefined ? {} : decodeRecord<ProcessRecord>(bytes)
  return stage_id !== undefined && convIdFrom(view, alias, stage_id) === conv_id
}

export interface HandlersOptions {
  readonly clock: Clock
  readonly limits: Limits
  readonly given?: GivenHandlers | undefined
}

export function newHandlers({ clock, limits, given = {} }: HandlersOptions): Handlers {
  const bounds = plainBounds(limits, levels_around_data)
  const registered = new Map<string, Registered>()
  let by_title = new Map<string, Scopes>()

  function add(name: string, handler: Handler, options: HandlerOptions = {}): () => void {
    const added = readHandler(name, handler, options)
    registered.set(name, added)
    by_title = titlesOf(registered.keys())
    return () => {
      if (registered.get(name) !== added) return
      registered.delete(name)
      by_title = titlesOf(registered.keys())
    }
  }

  function nameFor(view: View, conv_id: string, title: string): string | undefined {
    const scopes = by_title.get(title)
    if (scopes === undefined) return undefined
    const own = scopes.by_process.get(conv_id)
    if (own !== undefined) return own
    for (const [alias, name] of scopes.by_alias) {
      if (isNamed(view, alias, conv_id)) return name
    }
    return scopes.everywhere
  }

  for (const [name, one] of Object.entries(given)) {
    if (typeof one === 'object' && one !== null) add(name, one.handler, one)
    else add(name, one)
  }
  return {
    add,
    nameFor,
    nameIn(view, conv_id, { title, logics }) {
      for (const { type, waits_for } of logics) {
        const name = nameFor(view, conv_id, waits_for === 'callback' ? title : type)
        if (name !== undefined) return name
      }
      return undefined
    },
    namesOf(view, conv_id) {
      const names: string[] = []
      for (const { by_process, by_alias } of by_title.values()) {
        const own = by_process.get(conv_id)
        if (own !== undefined) names.push(own)
        for (const [alias, name] of by_alias) {
          if (isNamed(view, alias, conv_id)) names.push(name)
        }
      }
      return names
    },
    mayRun(name, conv_id) {
      const scopes = by_title.get(name)
      if (scopes === undefined) return false
      if (scopes.everywhere !== undefined || scopes.by_alias.size > 0) return true
      return conv_id !== undefined && scopes.by_process.has(conv_id)
    },
    isEmpty: () => registered.size === 0,
    count: () => registered.size,
    find: (name) => registered.get(name),
    async run(name, job) {
      const found = registered.get(name)
      if (found === undefined) return failed('hardware', 'handler_error', 'none is registered')
      return runOne(clock, bounds, found, job)
    },
  }
}

function readHandler(name: string, handler: Handler, options: HandlerOptions): Registered {
  if (name === '') throw new RangeError('the name of a handler is empty')
  if (typeof handler !== 'function') throw new TypeError(`the handler ${name} is no function`)
  const { threads_max = 16, time_ms_max = 60_000, attempts_max = 5, backoff_ms = 1_000 } = options
  const numbers = { threads_max, time_ms_max, attempts_max, backoff_ms }
  for (const option of Object.keys(options)) {
    if (Object.hasOwn(numbers, option) || option === 'handler') continue
    throw new RangeError(`a handler has no option ${option}`)
  }
  for (const [option, value] of Object.entries(numbers)) {
    if (Number.isSafeInteger(value) && value > 0) continue
    if (option === 'attempts_max' && value === Number.POSITIVE_INFINITY) continue
    throw new RangeError(`${option}: ${String(value)} is no whole number of 1 or more`)
  }
  return { handler, ...numbers }
}

/**
 * Each name as a title everywhere, and split at each slash, because titles and ids may contain
 * slashes. Sorted, so the first alias of a process counts.
 */
function titlesOf(names: Iterable<string>): Map<string, Scopes> {
  const by_title = new Map<string, Scopes>()
  const scopesOf = (title: string): Scopes => {
    const none = { everywhere: undefined, by_process: new Map(), by_alias: new Map() }
    const scopes = by_title.get(title) ?? none
    by_title.set(title, scopes)
    return scopes
  }
  for (const name of [...names].sort()) {
    scopesOf(name).everywhere = name
    for (let at = name.indexOf('/'); at !== -1; at = name.indexOf('/', at + 1)) {
      const { by_process, by_alias } = scopesOf(name.slice(at + 1))
      const scope = name.slice(0, at)
      const by_scope = scope.startsWith('@') ? by_alias : by_process
      by_scope.set(scope, name)
    }
  }
  return by_title
}

async function runOne(
  clock: Clock,
  bounds: PlainBounds,
  { handler, time_ms_max }: Registered,
  job: Job,
): Promise<JobOutcome> {
  const abort = new AbortController()
  let cancel = (): void => {}
  const late = new Promise<JobOutcome>((resolve) => {
    cancel = clock.wake_at(clock.now_ms() + time_ms_max, () => {
      abort.abort()
      resolve(failed('hardware', 'handler_timeout', `no answer within ${time_ms_max} ms`))
    })
  })
  const onAbort = (): void => abort.abort()
  job.signal.addEventListener('abort', onAbort, { once: true })
  try {
    return await Promise.race([answerOf(handler, job, abort.signal, bounds), late])
  } finally {
    cancel()
    job.signal.removeEventListener('abort', onAbort)
  }
}

async function answerOf(
  handler: Handler,
  { task, key }: Job,
  signal: AbortSignal,
  bounds: PlainBounds,
): Promise<JobOutcome> {
  try {
    const given = await handler(task, { signal, key })
    if (given === undefined || given === null) return { outcome: 'done', text: '{}' }
    const is_object = typeof given === 'object' && !Array.isArray(given)
    if (!is_object) {
      return failed('software', 'handler_error', 'the handler gave no object')
    }
    const doc = docOfPlain(given, bounds)
    if (typeof doc !== 'string') return { outcome: 'done', text: doc.text }
    return failed('software', 'handler_error', `the handler gave what is no JSON: ${doc}`)
  } catch (error) {
    const is_final = isFault(error) && error.code === 'wrong_validate_params'
    if (is_final) return failed('software', 'handler_error', textOf(error))
    return { ...failed('hardware', 'handler_error', textOf(error)), thrown_in: placeOf(error) }
  }
}

const causes_max = 4

/** The message and its causes'; any value can be thrown. */
function textOf(error: unknown): string {
  try {
    if (!(error instanceof Error)) return String(error)
    const says: string[] = []
    let cause: unknown = error
    for (let n = 0; n < causes_max && cause instanceof Error; n++, cause = cause.cause) {
      says.push(cause.message || String((cause as NodeJS.ErrnoException).code ?? cause.name))
    }
    return says.join(': ')
  } catch {
    return 'the handler threw'
  }
}

/** The innermost line of the program that threw. */
function placeOf(error: unknown): string | undefined {
  try {
    return /^ +at (?:async )?(?!.*\bnode:)(.+)$/m.exec(String((error as Error).stack))?.[1]
  } catch {
    return undefined
  }
}

function failed(
  error_type: 'hardware' | 'software',
  tag: 'handler_error' | 'handler_timeout',
  description: string,
): JobOutcome {
  return { outcome: 'failed', error_type, tag, description, may_pass: error_type === 'hardware' }
}
