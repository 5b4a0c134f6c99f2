/**
 * A read-only engine over a standby's state (`EngineOptions.stale_reads`). Each answer is a
 * committed state of the owner, and reads never go back. An engine caches users, secrets and
 * certificates, so once frames change these, a new engine replaces it before the position advances.
 */
import { keysOfType } from '../codec/keys.ts'
import { isOp } from '../codec/op.ts'
import { type Fault, fault } from '../core/faults.ts'
import type { Limits } from '../core/limits.ts'
import { keyStart, nextOffset } from '../store/changes/change-encoding.ts'
import { changesAt, type Frame } from '../store/commit-log/frame.ts'
import type { StandbyCopy, StandbyReads } from '../store/commit-log/source.ts'
import { readingStore } from '../store/reading-store.ts'
import type { Store } from '../store/store.ts'
import { type EngineParts, startEngine } from './engine.ts'
import { format, formatIn } from './file/format.ts'
import { only_reads, type ServedEngine } from './served-engine.ts'

interface StandbyReader {
  /** A proxy for the current engine. */
  readonly engine: ServedEngine
  taken(frames: readonly Frame[]): Promise<void>
  end(): void
}

interface StandbyReaderOptions {
  readonly copy: StandbyCopy
  readonly age_ms_max: number
  readonly limits: Limits
  start(store: Store): Promise<ServedEngine>
}

/** Undefined without `stale_reads`. */
export function standbyReads(parts: Omit<EngineParts, 'store'>): StandbyReads | undefined {
  const { stale_reads, ...options } = parts.options
  if (stale_reads === undefined) return undefined
  const { use, age_ms_max = Number.POSITIVE_INFINITY } = stale_reads
  // The owner removes changes.
  const kept = { changes_bytes_max: Number.MAX_VALUE, changes_kept_ms: Number.MAX_VALUE }
  const reading = {
    ...{ ...parts, limits: { ...parts.limits, ...kept } },
    options: { ...options, background: false, tracing: undefined },
  }
  let reader: StandbyReader | undefined
  let ending: Promise<void> | undefined

  async function end(ended: StandbyReader | undefined): Promise<void> {
    if (ended === undefined) return
    try {
      await use(undefined)
    } finally {
      ended.end()
    }
  }

  return {
    async begin(copy) {
      ending = undefined
      reader = await openStandbyReader({
        ...{ copy, age_ms_max, limits: parts.limits },
        start: (store) =>
          startEngine({
            ...{ ...reading, store },
            // Listeners must not outlive the engine.
            events: { ...parts.events, on: () => () => {} },
            failed: new Promise(() => {}),
          }),
      })
      if (reader !== undefined) await use(reader.engine)
    },
    taken: async (frames) => reader?.taken(frames),
    end() {
      ending ??= end(reader)
      return ending
    },
  }
}

/** First bytes of the keys that an engine caches. */
const kept_types: ReadonlySet<number> = new Set(
  (['user', 'secret', 'certificate'] as const).map((type) => keysOfType(type).from.charCodeAt(0)),
)

/** Members that change nothing, beside shows by `submit` and `apply`. */
const reads = {
  engine: [
    ...[
      'task',
      'listTasks',
      'countTasks',
      'waitsOf',
      'taskById',
      'check',
      'diagnose',
      'statistics',
    ],
    ...[
      'health',
      'ready',
      'checkRate',
      'payForRead',
      'answerAccount',
      'callerOf',
      'keyState',
      'emit',
    ],
    ...['allowCalls', 'onEnd', 'isBusy', 'flush', 'drain'],
  ],
  tasks: ['list', 'count', 'bulkJobs'],
  processes: ['list', 'show', 'versions', 'aliases'],
  schedules: ['list', 'show'],
  users: ['list', 'bindings', 'secrets', 'consoleRight'],
}

/** Undefined if the owner's format is not readable here. */
async function openStandbyReader(
  options: StandbyReaderOptions,
): Promise<StandbyReader | undefined> {
  const { copy, age_ms_max } = options
  let is_over = false
  let has_format = hasFormat(copy)
  if (!has_format) return undefined
  const refusal = (): Fault =>
    fault('overloaded', `${copy.says()}; it answers reads only`, { outside: only_reads })
  const refuse = (): never => {
    throw refusal()
  }

  function unavailable(): Fault | undefined {
    if (is_over || !has_format) return refusal()
    const age_ms = Math.ceil(copy.age_ms())
    if (age_ms <= age_ms_max) return undefined
    return fault('overloaded', `what this standby has may be ${age_ms} ms old; ask another`)
  }

  let seq = copy.seq()

  async function startReading(): Promise<ServedEngine> {
    let is_starting = true
    const started = await options.start(
      readingStore(copy.tree, {
        unavailable: () => (is_starting ? undefined : unavailable()),
        refusal,
      }),
    )
    is_starting = false
    const { submit, apply, tasks, processes, schedules, users } = started
    return {
      ...kept(started, reads.engine, refuse),
      limits: options.limits,
      tasks: kept(tasks, reads.tasks, refuse),
      processes: kept(processes, reads.processes, refuse),
      schedules: kept(schedules, reads.schedules, refuse),
      users: kept(users, reads.users, refuse),
      staleness: () => ({ seq, age_ms: Math.ceil(copy.age_ms()) }),
      submit: async (ops, caller) =>
        ops.some((op) => isOp(op) && op.type !== 'show') ? refuse() : submit(ops, caller),
      apply: async (ops, caller) => (ops.every(isShow) ? apply(ops, caller) : refuse()),
    }
  }

  let current = await startReading()
  return {
    engine: new Proxy(current, { get: (_, name) => Reflect.get(current, name) }),
    async taken(frames) {
      has_format = hasFormat(copy)
      if (has_format && !is_over && frames.some(changesKept)) current = await startReading()
      seq = copy.seq()
    },
    end() {
      is_over = true
    },
  }
}

/** The same object, refusing each method not in `names`. */
function kept<T extends object>(of: T, names: readonly string[], refuse: () => never): T {
  const entries = Object.entries(of).map(([name, member]) => [
    name,
    typeof member === 'function' && !names.includes(name) ? refuse : member,
  ])
  return Object.fromEntries(entries)
}

function hasFormat({ tree }: StandbyCopy): boolean {
  return formatIn(tree) === format
}

function isShow(op: unknown): boolean {
  return (op as { type?: unknown } | null)?.type === 'show'
}

function changesKept({ segment, at, count }: Frame): boolean {
  let offset = changesAt(at)
  for (let left = count; left > 0; left--) {
    if (kept_types.has(segment[keyStart(offset)] as number)) return true
    offset = nextOffset(segment, offset)
  }
  return false
}
