/**
 * Engines for tests that inspect the store: on a tree of the test's own, or on a file, with a clock
 * that the test sets.
 *
 * Every engine has a sentinel: a task whose timer is due in a hundred years. So an idle engine
 * always has one timer set that is not due, by which `settled` recognises it.
 */

import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { metaKey } from '../../src/codec/keys.ts'
import { systemChance } from '../../src/core/clock.ts'
import { newEvents } from '../../src/core/events.ts'
import type { Fault } from '../../src/core/faults.ts'
import { limitsWith } from '../../src/core/limits.ts'
import type { Engine, EngineOptions } from '../../src/engine/api/engine-api.ts'
import { startEngine } from '../../src/engine/engine.ts'
import { newHandlers } from '../../src/engine/jobs/handlers.ts'
import { databasesOf } from '../../src/executors/databases/instances.ts'
import { newExecutors } from '../../src/executors/executors.ts'
import { openEngine } from '../../src/open.ts'
import { changesOf } from '../../src/store/changes/change-buffer.ts'
import { storeOf } from '../../src/store/group-commit.ts'
import { memoryTree } from '../../src/store/memory-tree.ts'
import type { Tree } from '../../src/store/tree.ts'
import { type FakeClock, fakeClock } from './fake-clock.ts'
import { quickFolder } from './store-folder.ts'

/** A close does not wait for jobs under way, because no one moves the clock meanwhile. */
export const at_once = { drain_ms_max: 0 }

export interface Harness {
  readonly clock: FakeClock
  /**
   * Opens what an earlier engine of this harness closed; the options are those of the harness and these.
   */
  open(more?: EngineOptions): Promise<Engine>
  remove(): Promise<void>
}

/** An engine over a tree, which is signed in to where it is new. */
export async function engineOn(tree: Tree, options: EngineOptions = {}): Promise<Engine> {
  if (tree.get(metaKey('format')) === undefined) {
    await tree.commit(
      changesOf([
        [metaKey('format'), Buffer.from('3')],
        [metaKey('file_id'), Buffer.from('12345678')],
        [metaKey('id_middle'), Buffer.from([1, 2, 3, 4, 5])],
      ]),
    )
  }
  let failure: Fault | undefined
  let emitFailed = (_failure: Fault): void => {}
  const failed = new Promise<Fault>((resolve) => {
    emitFailed = resolve
  })
  const store = storeOf(tree, {
    onFail: (told) => {
      failure = told
      emitFailed(told)
      options.onFailure?.(told)
    },
    free_bytes_min: options.limits?.disk_free_bytes_min ?? 0,
  })
  const { clock = fakeClock(), chance = systemChance } = options
  const limits = limitsWith({ ...at_once, ...options.limits })
  const handlers = newHandlers({ clock, limits, given: options.handlers })
  const databases = options.databases && databasesOf(options.databases)
  return startEngine({
    events: newEvents(options.logger, clock),
    path: ':memory:',
    store,
    limits,
    clock,
    chance,
    key_path: undefined,
    failure: () => failure,
    failed,
    options: { secret_key: '11'.repeat(32), ...options },
    handlers,
    db_call: databases?.db_call,
    executors: newExecutors({
      databases: databases?.instances,
      limits,
      clock,
      chance,
      allow_hosts: options.allow_hosts ?? [],
      handlers,
    }),
  })
}

/** A harness whose tree outlives its engines, in memory. */
export function memoryHarness(options: EngineOptions = {}): Harness {
  const tree = memoryTree()
  const clock = fakeClock()
  return {
    clock,
    open: async (more = {}) => withSentinel(await engineOn(tree, { ...options, clock, ...more })),
    remove: async () => {},
  }
}

/** A harness on a file of its own, opened as any other. */
export async function fileHarness(
  options: EngineOptions = {},
): Promise<Harness & { path: string }> {
  const folder = await quickFolder('conveyor-bed-')
  const path = join(folder, 'tasks.lmdb')
  const clock = fakeClock()
  return {
    clock,
    path,
    async open(more = {}) {
      const given = { ...options, clock, ...more }
      const limits = { ...at_once, ...given.limits }
      return withSentinel(await openEngine(path, { ...given, limits }))
    },
    remove: () => rm(folder, { recursive: true, force: true }),
  }
}

const sentinel = 'sentinel'
const sentinel_s = 3_000_000_000

export async function withSentinel(engine: Engine): Promise<Engine> {
  const wait = {
    type: 'time',
    value: sentinel_s,
    dimension: 'sec',
    to_node_id: 'end',
  }
  const { state } = await engine.processes.put({
    obj_id: sentinel,
    scheme: {
      nodes: [
        { id: 'start', obj_type: 1, condition: { logics: [{ type: 'go', to_node_id: 'wait' }] } },
        { id: 'wait', obj_type: 0, condition: { logics: [], semaphors: [wait] } },
        { id: 'end', obj_type: 2 },
      ],
    },
  })
  if (state === 'created') await engine.create({ conv_id: sentinel, data: {} })
  return engine
}

/** Resolves once nothing is due and nothing is under way in an engine of a harness. */
export async function settled(clock: FakeClock): Promise<void> {
  for (let turns = 0; turns < 1_000_000; turns++) {
    const wake_ms = clock.nextWake_ms()
    if (wake_ms !== undefined && wake_ms > clock.now_ms()) return
    await new Promise((resolve) => setImmediate(resolve))
  }
  throw new Error('the engine does not come to rest')
}
