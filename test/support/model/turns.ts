/**
 * What the engine does by itself, in the model: in turns it migrates, fires timers, removes ended
 * tasks and looks for tasks of handlers, each a slice of bounded size and a transaction of its own.
 *
 * Timers fire in due order. A process has one number, before which nothing of it is due; of equal
 * numbers the process comes first that has waited longest for its turn.
 */
import { advanceReady, enter, migrate, saveAndDrain } from './advance.ts'
import { isLive, type ModelTask, type World } from './world.ts'

export type Turns = ReturnType<typeof newTurns>
const never = Number.POSITIVE_INFINITY

export function newTurns(world: World) {
  const { processes, limits } = world
  const due = new Map<string, number>()
  const to_migrate = new Set<string>()
  /** The processes to look at for tasks of handlers, and the task from which on. */
  const to_hand_over = new Map<string, string>()
  let looks_everywhere = true
  let sweep_ms = never
  let turn = 0

  const ofConv = (conv: string): ModelTask[] => world.live(conv).sort(byDue)
  const firstDue = (conv: string): number | undefined =>
    ofConv(conv).find(({ due_ms }) => due_ms > 0)?.due_ms
  const lower = (conv: string, due_ms: number): void => {
    if (due_ms < (due.get(conv) ?? never)) due.set(conv, due_ms)
  }

  function earliest(): { conv: string | undefined; ms: number; next_ms: number } {
    let found: { conv: string | undefined; ms: number; next_ms: number } = {
      conv: undefined,
      ms: never,
      next_ms: never,
    }
    for (const [conv, ms] of due) {
      if (ms < found.ms) found = { conv, ms, next_ms: found.ms }
      else if (ms < found.next_ms) found = { ...found, next_ms: ms }
    }
    return found
  }

  function oldestEnded(): number | undefined {
    const ended = [...world.tasks.values()].filter((task) => !isLive(task))
    return ended.length === 0 ? undefined : Math.min(...ended.map(({ changed_ms }) => changed_ms))
  }

  /** Of what was begun: what is due by it. */
  function publish(): void {
    const { timers, has_ended } = world.tx
    for (const [conv, ms] of timers) lower(conv, ms)
    if (has_ended && sweep_ms === never) sweep_ms = world.now_ms + limits.ended_kept_ms
    world.begin()
  }

  function fire(): () => void {
    const { conv = '', next_ms } = earliest()
    due.delete(conv)
    const left_ms = fireDue(conv, Math.min(next_ms, world.now_ms))
    return () => {
      if (left_ms !== undefined) lower(conv, left_ms)
    }
  }

  function fireDue(conv: string, until_ms: number): number | undefined {
    const process = processes.get(conv)
    if (process === undefined || process.is_paused) return undefined
    const overdue = ofConv(conv).filter(({ due_ms }) => due_ms > 0 && due_ms <= until_ms)
    for (const [task, due_ms] of overdue
      .slice(0, limits.slice_tasks_max)
      .map((one) => [one, one.due_ms] as const)) {
      if (world.tx.moves_made >= limits.moves_per_transaction_max) break
      if (task.due_ms !== due_ms || task.is_gone) continue
      world.beginOp()
      if (task.wait === 'ready') advanceReady(world, task)
      else {
        task.due_ms = 0
        const timers = process.plan.nodes.get(task.node)?.timers ?? []
        if (!migrate(world, task)) {
          const timer = timers[task.timer_at] ?? timers[0]
          world.meet('timer')
          if (timer !== undefined) enter(world, task, timer.to, 'timer')
        }
      }
      saveAndDrain(world, task)
    }
    return firstDue(conv)
  }

  /** A slice of a process; whether no task is left to migrate. */
  function migrateSlice(conv: string): boolean {
    const process = processes.get(conv)
    if (process === undefined || process.is_paused || process.moves.size === 0) return true
    let left = limits.slice_tasks_max
    let moved = 0
    for (const node of process.moves.keys()) {
      const there = world
        .live(conv)
        .filter((task) => task.node === node)
        .sort(byId)
      for (const task of there.slice(0, left)) {
        left--
        world.beginOp()
        if (task.is_gone || !isLive(task) || !migrate(world, task)) continue
        saveAndDrain(world, task)
        moved++
        if (world.tx.moves_made >= limits.moves_per_transaction_max) return false
      }
      if (left === 0) return moved === 0
    }
    if (moved < limits.slice_tasks_max - left) return true
    process.moves = new Map()
    world.writes++
    return true
  }

  function sweep(): () => void {
    const until_ms = world.now_ms - limits.ended_kept_ms
    sweep_ms = never
    const ended = [...world.tasks.values()].filter(
      (task) => !isLive(task) && task.changed_ms <= until_ms,
    )
    ended.sort(
      (one, other) =>
        bytesOrder(one.conv, other.conv) || one.changed_ms - other.changed_ms || byId(one, other),
    )
    for (const task of ended.slice(0, limits.slice_tasks_max)) world.sweep(task)
    const oldest_ms = oldestEnded()
    return () => {
      if (oldest_ms !== undefined) sweep_ms = Math.min(sweep_ms, oldest_ms + limits.ended_kept_ms)
    }
  }

  /** Tasks in the nodes of the handled title are looked at; they wait for their handler already. */
  function handOver(): void {
    if (looks_everywhere) {
      looks_everywhere = false
      for (const conv of [...processes.keys()].sort(bytesOrder)) to_hand_over.set(conv, '')
      return
    }
    const [first] = to_hand_over
    if (first === undefined) return
    const [conv, from] = first
    to_hand_over.delete(conv)
    const process = processes.get(conv)
    if (process === undefined || process.is_paused) return
    const nodes = [...process.plan.nodes.values()].filter(
      ({ title, steps }) =>
        title === world.handled_title && steps.some(({ does }) => does === 'api_callback'),
    )
    const there = nodes
      .flatMap(({ id }) => world.live(conv).filter((task) => task.node === id))
      .map(({ node, obj_id }) => `${node} ${obj_id}`)
      .filter((place) => place > from)
      .sort()
      .slice(0, limits.slice_tasks_max)
    if (there.length === limits.slice_tasks_max) to_hand_over.set(conv, there.at(-1) as string)
  }

  const works: readonly { due_ms(): number; step(): (() => void) | undefined }[] = [
    {
      due_ms: () => (to_migrate.size > 0 ? 0 : never),
      step() {
        const [conv = ''] = to_migrate
        to_migrate.delete(conv)
        const is_done = migrateSlice(conv)
        return () => void (is_done || to_migrate.add(conv))
      },
    },
    { due_ms: () => earliest().ms, step: fire },
    { due_ms: () => sweep_ms, step: sweep },
    {
      due_ms: () => (looks_everywhere || to_hand_over.size > 0 ? 0 : never),
      step: () => void handOver(),
    },
    { due_ms: () => never, step: () => undefined },
  ]

  return {
    publish,
    /** A step of what is due, in the transaction that has begun; false where nothing is. */
    step(): boolean {
      for (let n = 0; n < works.length; n++) {
        const at = (turn + n) % works.length
        const work = works[at] as (typeof works)[number]
        if (work.due_ms() > world.now_ms) continue
        turn = at + 1
        world.beginRequest()
        const after = work.step()
        publish()
        after?.()
        return true
      }
      return false
    },
    onProcessChanged(conv: string): void {
      to_migrate.add(conv)
      lower(conv, 0)
      to_hand_over.set(conv, '')
    },
    /** An opening knows only what is stored. */
    reopen(): void {
      turn = 0
      due.clear()
      to_migrate.clear()
      to_hand_over.clear()
      looks_everywhere = true
      for (const conv of [...processes.keys()].sort(bytesOrder)) {
        if (processes.get(conv)?.is_paused) continue
        const first_ms = firstDue(conv)
        if (first_ms !== undefined) due.set(conv, first_ms)
        if ((processes.get(conv)?.moves.size ?? 0) > 0) to_migrate.add(conv)
      }
      const oldest_ms = oldestEnded()
      sweep_ms = oldest_ms === undefined ? never : oldest_ms + limits.ended_kept_ms
    },
  }
}

const byId = (one: ModelTask, other: ModelTask): number => (one.obj_id < other.obj_id ? -1 : 1)
const byDue = (one: ModelTask, other: ModelTask): number =>
  one.due_ms - other.due_ms || byId(one, other)
const bytesOrder = (one: string, other: string): number =>
  Buffer.compare(Buffer.from(one), Buffer.from(other))
