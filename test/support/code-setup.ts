/**
 * An engine whose code jobs pause before they run: a test gets each order, may change anything, and
 * then lets the order run in the real sandbox. The store outlives the engines of a setup.
 */

import { metaKey } from '../../src/codec/keys.ts'
import { newEvents } from '../../src/core/events.ts'
import { type LimitName, limitsWith } from '../../src/core/limits.ts'
import type { Engine } from '../../src/engine/api/engine-api.ts'
import { startEngine } from '../../src/engine/engine.ts'
import { newHandlers } from '../../src/engine/jobs/handlers.ts'
import type { CodeExecutor } from '../../src/executors/code.ts'
import { newExecutors } from '../../src/executors/executors.ts'
import type { JobOutcome } from '../../src/process/logic.ts'
import { changesOf } from '../../src/store/changes/change-buffer.ts'
import { storeOf } from '../../src/store/group-commit.ts'
import { memoryTree } from '../../src/store/memory-tree.ts'
import { fakeChance, fakeClock } from './fake-clock.ts'
import { at_once } from './model-setup.ts'
import { node } from './processes.ts'

export interface Order {
  readonly src: string
  readonly data_text: string
  /** Lets the order run in the sandbox. */
  go(): void
}

export interface CodeHarness {
  readonly clock: ReturnType<typeof fakeClock>
  open(): Promise<Engine>
  /** The next order that starts. */
  order(): Promise<Order>
}

const closed_outcome: JobOutcome = {
  outcome: 'failed',
  error_type: 'hardware',
  tag: 'code_executing_error',
  description: 'closed',
}

/** Bugs that the engine reports go to `bugs`. Code runs in `shared` where it is given. */
export async function codeHarness(
  given: Partial<Record<LimitName, number>>,
  bugs: unknown[],
  shared?: Promise<CodeExecutor>,
): Promise<CodeHarness> {
  const limits = limitsWith({ ...at_once, ...given })
  const clock = fakeClock()
  const tree = memoryTree()
  await tree.commit(
    changesOf([
      [metaKey('format'), Buffer.from('3')],
      [metaKey('file_id'), Buffer.from('12345678')],
      [metaKey('id_middle'), Buffer.from([1, 2, 3, 4, 5])],
    ]),
  )
  const begun: Order[] = []
  const gates = new Set<() => void>()
  const asked: ((order: Order) => void)[] = []

  async function pause(src: string, data_text: string): Promise<void> {
    await new Promise<void>((go) => {
      gates.add(go)
      const order = { src, data_text, go }
      const next = asked.shift()
      if (next === undefined) begun.push(order)
      else next(order)
    })
  }

  return {
    clock,
    async open() {
      const handlers = newHandlers({ clock, limits })
      const executors = newExecutors({
        limits,
        clock,
        chance: fakeChance(),
        allow_hosts: [],
        handlers,
      })
      let closed = false
      return startEngine({
        events: newEvents(undefined, clock),
        path: ':memory:',
        store: storeOf(tree, { onFail: (failure) => bugs.push(failure) }),
        limits,
        clock,
        chance: fakeChance(),
        key_path: undefined,
        failure: () => undefined,
        failed: new Promise(() => {}),
        options: { secret_key: '11'.repeat(32), onBug: (bug) => bugs.push(bug) },
        handlers,
        executors: {
          ...executors,
          async code(order, job) {
            await pause(order.src, order.doc.text)
            if (closed) return closed_outcome
            return shared === undefined ? executors.code(order, job) : (await shared).run(order)
          },
          async close() {
            closed = true
            for (const go of gates) go()
            await executors.close()
          },
        },
      })
    },
    async order() {
      return begun.shift() ?? new Promise((resolve) => asked.push(resolve))
    },
  }
}

/** Process 1: start → code (to `late` after a second, to `broken` on failure) → done. */
export function codeProcess(src: string, more: { late?: string; broken?: false } = {}): object {
  const err_node_id = more.broken === false ? '' : 'broken'
  const semaphor = { type: 'time', value: 1, dimension: 'sec', to_node_id: more.late ?? 'late' }
  const kept = (id: string) => ({ id, obj_type: 2, title: id, options: '{"save_task":true}' })
  const code = { type: 'api_code', lang: 'js', src, err_node_id }
  return {
    obj_id: 1,
    title: 'code',
    scheme: {
      nodes: [
        { id: 'start', obj_type: 1, condition: { logics: [{ type: 'go', to_node_id: 'code' }] } },
        node('code', 0, [code, { type: 'go', to_node_id: 'done' }], {
          semaphors: more.late === undefined ? [] : [semaphor],
        }),
        kept('done'),
        kept('broken'),
        kept('late'),
      ],
    },
  }
}

/** The task once it is in the node; rejects where that takes too long. */
export async function inNode(engine: Engine, obj_id: string, node_id: string) {
  for (let turns = 0; turns < 2_000; turns++) {
    const task = await engine.task({ conv_id: 1, obj_id })
    if (task?.node_id === node_id && task.status !== 'delayed') return task
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  throw new Error(`${obj_id} does not come to ${node_id}`)
}
