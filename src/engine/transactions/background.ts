/**
 * The loop for background work: timers, schedules, migrations, hand-over to handlers, removal of
 * ended tasks and old changes. What is due is data in the store. A step is one or a few bounded
 * transactions; kinds that are due take turns. On a full disk only kinds that free room run.
 */
import { type Clock, newAlarm } from '../../core/clock.ts'
import { isStoreClosed, isStoreUnavailable } from '../../core/faults.ts'
import { type Admission, full_disk_ms } from './admission.ts'

export interface Work {
  /** Infinity without a step. */
  due_ms(): number
  /** Rejects if the store refuses for now: the step is still due. */
  step(): Promise<void>
  readonly frees_room?: true
}

export interface Background {
  start(): void
  wake(): void
  isBusy(): boolean
  /** A bug has stopped it until the next open. */
  isBroken(): boolean
  /** Resolves once the current step is done. */
  stop(): Promise<void>
}

export interface BackgroundOptions {
  readonly clock: Clock
  readonly admission: Admission
  readonly works: readonly Work[]
  /** For a bug that a step has not isolated; the loop stops. */
  onBug(error: unknown): void
}

export function newBackground(options: BackgroundOptions): Background {
  const { clock, admission, works } = options
  const alarm = newAlarm(clock, run)
  let running: Promise<void> | undefined
  let is_started = false
  let is_stopped = false
  let is_broken = false
  /** A full disk refused a commit: nothing is tried before. */
  let held_until_ms = 0
  let turn = 0

  function wake(): void {
    if (!is_started || is_stopped || running !== undefined) return
    const retry_ms = admission.hasRoom() ? 0 : clock.now_ms() + full_disk_ms
    let next_ms = Number.POSITIVE_INFINITY
    for (const { due_ms, frees_room } of works) {
      next_ms = Math.min(next_ms, frees_room ? due_ms() : Math.max(due_ms(), retry_ms))
    }
    if (next_ms < Number.POSITIVE_INFINITY) alarm.ringBy(Math.max(next_ms, held_until_ms))
  }

  function run(): void {
    if (is_stopped || running !== undefined) return
    running = runDue()
      .catch((error: unknown) => {
        if (isStoreUnavailable(error) && !isStoreClosed(error)) {
          held_until_ms = clock.now_ms() + full_disk_ms
          return
        }
        is_stopped = true
        if (isStoreClosed(error)) return
        is_broken = true
        options.onBug(error)
      })
      .finally(() => {
        running = undefined
        wake()
      })
  }

  async function runDue(): Promise<void> {
    for (let work = nextDue(); work !== undefined && !is_stopped; work = nextDue()) {
      await work.step()
    }
  }

  function nextDue(): Work | undefined {
    const now_ms = clock.now_ms()
    const has_room = admission.hasRoom()
    for (let n = 0; n < works.length; n++) {
      const at = (turn + n) % works.length
      const work = works[at] as Work
      if ((!has_room && !work.frees_room) || work.due_ms() > now_ms) continue
      turn = at + 1
      return work
    }
    return undefined
  }

  return {
    start() {
      is_started = true
      wake()
    },
    wake,
    isBusy: () => running !== undefined,
    isBroken: () => is_broken,
    async stop() {
      is_stopped = true
      alarm.clear()
      await running
    },
  }
}
