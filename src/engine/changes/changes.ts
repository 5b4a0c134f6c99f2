/**
 * The feed: async iterators over committed changes after a position. An iterator reads pages of
 * bounded size and waits for a commit at their end. It holds one position and page, so an idle
 * consumer costs nothing, and a slow one gets `changes_gone`.
 */
import { type ChangedTask, changesOfEntry } from '../../codec/change-entry.ts'
import { changeKey } from '../../codec/keys.ts'
import { nextTurn } from '../../core/clock.ts'
import { type Fault, fault, isFault } from '../../core/faults.ts'
import type { Caller, Task } from '../../core/model.ts'
import type { View } from '../../store/store.ts'
import { maySee } from '../access/users.ts'
import type { Changes, ChangesOptions, TaskChange } from '../api/change-api.ts'
import { accessDenied, faultOf, noProcess } from '../tasks/task-rules.ts'
import { readableTask } from '../tasks/task-store.ts'
import { viewTask } from '../tasks/task-view.ts'
import { type ChangeEntry, readEntry } from '../transactions/change-log.ts'
import type { Parts } from '../transactions/parts.ts'
import type { ChangeWindow } from './change-window.ts'

export interface ChangeFeed {
  readonly changes: Changes
  /**
   * The changes that a caller may see, interleaved with positions that the feed has passed (first
   * where it begins, unless from `start`). Also rejects with `access_denied`, for a process without
   * the right, also if removed meanwhile.
   */
  seenBy(caller: Caller, options: ChangesOptions): AsyncIterableIterator<SeenChange>
  /** Call after a commit that has changed tasks. */
  onCommitted(last: ChangeEntry): void
  /** Open iterators. */
  readers(): number
  close(): void
}

/** Without an obj_id it is only a position to resume from. */
export type SeenChange = TaskChange | { readonly position: string; readonly obj_id?: undefined }

/** Bounds of one read of the store, but at least one entry. */
const page = { entries: 256, changes: 512, bytes: 256 * 1024 }
/** Tasks read at once; fewer if their data is long. */
const tasks_at_once = 16
const task_chars_at_once = 64 * 1024

/** Marks a position that no consumer has given. */
const unknown_ms = -1

interface Page {
  readonly changes: readonly (ChangedTask & Pick<TaskChange, 'position' | 'at_ms'>)[]
  readonly next: ChangePosition
}

/** `file_id` of the data file, in hex. */
export function newChangeFeed(
  { store, catalog, limits }: Parts,
  window: ChangeWindow,
  file_id: string,
): ChangeFeed {
  let is_closed = false
  let readers = 0
  let waiting: (() => void)[] = []

  function wake(): void {
    const resumed = waiting
    waiting = []
    for (const resume of resumed) resume()
  }

  /** Where an iterator begins, or a Fault. */
  function startOf(from: string | undefined): ChangePosition | Fault {
    const last = window.last()
    if (limits.changes_bytes_max === 0)
      return fault('not_possible', 'no changes are kept: changes_bytes_max is 0')
    if (from === undefined) return { n: last.n + 1, at: 0, at_ms: last.at_ms }
    if (from === 'start') return { n: Math.max(1, window.first().n), at: 0, at_ms: unknown_ms }
    const position = parsePosition(from, file_id)
    if (position === 'malformed') return fault('not_possible', 'this is no position of a change')
    if (position === 'foreign') return fault('not_possible', 'a position of another data file')
    return position
  }

  function gone(): Fault {
    const since = new Date(window.first().at_ms).toISOString()
    return fault(
      'changes_gone',
      `changes after this position are no longer kept; the oldest that is kept is of ${since}`,
    )
  }

  /** Throws `changes_gone` unless everything after the position is kept or yet to come. */
  function checkPosition(view: View, { n, at, at_ms }: ChangePosition): void {
    const { n: last_n } = window.last()
    // An older copy of the file may have replaced it and continued.
    const consumed = readEntry(view, at === 0 ? n - 1 : n)
    const is_other =
      at_ms !== unknown_ms && consumed !== undefined && at_ms !== Math.floor(consumed.at_ms)
    if (is_other || n > last_n + 1 || (at > 0 && n > last_n)) throw gone()
  }

  /** Throws `changes_gone` if an entry to read was removed. */
  function readPage(
    view: View,
    from: ChangePosition,
    isWanted: (view: View, conv_id: string) => boolean,
  ): Page {
    const changes: Page['changes'][number][] = []
    const { n: last_n } = window.last()
    let { n, at, at_ms } = from
    let bytes = 0
    for (let left = page.entries; left > 0 && n <= last_n && bytes < page.bytes; left--) {
      const value = view.get(changeKey(n))
      const entry = readEntry(view, n)
      if (value === undefined || entry === undefined) throw gone()
      bytes += value.length
      at_ms = entry.at_ms
      const found = changesOfEntry(value)
      for (; at < found.length && changes.length < page.changes; at++) {
        const change = found[at] as ChangedTask
        if (!isWanted(view, change.conv_id)) continue
        const is_end = at + 1 === found.length
        const next = is_end ? { n: n + 1, at: 0, at_ms } : { n, at: at + 1, at_ms }
        changes.push({ position: positionText(next, file_id), ...change, at_ms })
      }
      if (at < found.length) break
      n++
      at = 0
    }
    return { changes, next: { n, at, at_ms } }
  }

  async function* read(
    start: ChangePosition | Fault,
    { conv_id, from, data = false }: ChangesOptions,
    isStopped: () => boolean,
    caller: Caller | undefined,
  ): AsyncGenerator<SeenChange, undefined> {
    if (isFault(start)) throw start
    const wanted = conv_id === undefined ? undefined : String(conv_id)
    const isWanted = (view: View, conv_id: string): boolean =>
      (wanted === undefined || conv_id === wanted) &&
      (caller === undefined || maySee(view, caller, conv_id))
    /** Throws `access_denied`, also if the right was removed meanwhile. */
    const checkRight = (view: View): void => {
      if (wanted === undefined || isWanted(view, wanted)) return
      throw faultOf(accessDenied(caller?.user, wanted))
    }
    let next = start as ChangePosition
    await store.view((view) => {
      checkRight(view)
      if (wanted !== undefined && catalog.find(view, wanted) === undefined) {
        throw faultOf(noProcess(wanted))
      }
      checkPosition(view, next)
    })
    if (caller !== undefined && from !== 'start') {
      yield { position: positionText(next, file_id) }
    }
    while (!isStopped()) {
      if (next.n > window.last().n) {
        await new Promise<void>((resume) => waiting.push(resume))
        continue
      }
      const read = await store.view((view) => {
        checkRight(view)
        return readPage(view, next, isWanted)
      })
      next = read.next
      if (caller !== undefined && read.changes.length === 0) {
        yield { position: positionText(next, file_id) }
      }
      for (let at = 0; at < read.changes.length; ) {
        const some = read.changes.slice(at, at + tasks_at_once)
        const shown = data ? await withTasks(some) : some
        at += shown.length
        for (const change of shown) {
          if (isStopped()) return
          yield change
        }
      }
      if (next.n <= window.last().n) await nextTurn()
    }
  }

  /** At least one, with tasks. */
  function withTasks(changes: Page['changes']): Promise<TaskChange[]> {
    return store.view((view) => {
      const shown: TaskChange[] = []
      let chars = 0
      for (const change of changes) {
        const task = taskOf(view, change.obj_id)
        shown.push(task === undefined ? change : { ...change, task })
        chars += task?.data_text.length ?? 0
        if (chars >= task_chars_at_once) break
      }
      return shown
    })
  }

  function seenBy(
    caller: Caller | undefined,
    given: ChangesOptions,
  ): AsyncIterableIterator<SeenChange> {
    const { signal } = given
    let is_returned = false
    let is_reading = false
    const setReading = (now: boolean): void => {
      if (is_reading !== now) readers += now ? 1 : -1
      is_reading = now
    }
    const isStopped = (): boolean => is_closed || is_returned || signal?.aborted === true
    const reading = read(startOf(given.from), given, isStopped, caller)
    signal?.addEventListener('abort', wake, { once: true })
    const done = { done: true, value: undefined } as const
    const end = (): typeof done => {
      signal?.removeEventListener('abort', wake)
      setReading(false)
      return done
    }
    return {
      next: async () => {
        if (isStopped()) return end()
        setReading(true)
        try {
          const one = await reading.next()
          return one.done ? end() : one
        } catch (error) {
          end()
          // The closing engine has refused a read.
          if (isFault(error) && error.code === 'shutting_down') return done
          throw error
        }
      },
      return: async () => {
        is_returned = true
        wake()
        return end()
      },
      [Symbol.asyncIterator]() {
        return this
      },
    }
  }

  const changes: Changes = (options = {}) =>
    seenBy(undefined, options) as AsyncIterableIterator<TaskChange>

  return {
    changes,
    seenBy,
    onCommitted(last) {
      window.onCommitted(last)
      if (waiting.length > 0) wake()
    },
    readers: () => readers,
    close() {
      is_closed = true
      wake()
    },
  }
}

function taskOf(view: View, obj_id: string): Task | undefined {
  const draft = readableTask(view, obj_id)
  return draft && viewTask(draft.task)
}

export interface ChangePosition {
  /** After the last change of an entry, the next one. */
  readonly n: number
  /** Its first change that is not consumed. */
  readonly at: number
  /** Time of the entry with the last consumed change. */
  readonly at_ms: number
}

const form = /^([0-9a-z]{1,11})\.([0-9a-z]{1,7})\.([0-9a-z]{1,11})\.([0-9a-f]{1,32})$/

export function positionText({ n, at, at_ms }: ChangePosition, file_id: string): string {
  return `${n.toString(36)}.${at.toString(36)}.${Math.floor(at_ms).toString(36)}.${file_id}`
}

/** `foreign` for a position of another file. */
export function parsePosition(
  text: unknown,
  file_id: string,
): ChangePosition | 'malformed' | 'foreign' {
  const [, n = '', at = '', at_ms = '', file] = (typeof text === 'string' && form.exec(text)) || []
  if (file === undefined) return 'malformed'
  if (file !== file_id) return 'foreign'
  return { n: number(n), at: number(at), at_ms: number(at_ms) }
}

const number = (digits: string): number => Number.parseInt(digits, 36)
