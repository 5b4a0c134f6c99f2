/**
 * An engine for a history: on a tree that outlives it, with a clock that the history sets and
 * executors that hold each job until the history answers it. The disk may break at a commit, before
 * or after it is written.
 */
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { type Key, metaKey } from '../../../src/codec/keys.ts'
import { newEvents } from '../../../src/core/events.ts'
import type { Fault } from '../../../src/core/faults.ts'
import { limitsWith } from '../../../src/core/limits.ts'
import type { Engine } from '../../../src/engine/api/engine-api.ts'
import { startEngine } from '../../../src/engine/engine.ts'
import { newHandlers } from '../../../src/engine/jobs/handlers.ts'
import type { Job as EngineJob, Executors } from '../../../src/engine/jobs/job-dispatcher.ts'
import type { JobOrder, JobOutcome } from '../../../src/process/logic.ts'
import { changesOf } from '../../../src/store/changes/change-buffer.ts'
import { commit_log_id_bytes } from '../../../src/store/commit-log/frame.ts'
import { copy_mark } from '../../../src/store/commit-log/log-mark.ts'
import { openCommitLogTree } from '../../../src/store/commit-log/open.ts'
import { storeOf } from '../../../src/store/group-commit.ts'
import { memoryTree } from '../../../src/store/memory-tree.ts'
import type { Tree } from '../../../src/store/tree.ts'
import { type FakeClock, fakeClock } from '../fake-clock.ts'
import { openInProcess } from '../in-process-tree.ts'
import { quickFolder } from '../store-folder.ts'
import { fraction } from './expressions.ts'
import { backoff_ms, handler_attempts_max } from './jobs.ts'
import { handled_types } from './plan.ts'
import { variables } from './reads.ts'
import type { ModelLimits } from './world.ts'

/** A job under way. */
export interface Held {
  readonly order: JobOrder
  readonly job: EngineJob
  answer(outcome: JobOutcome): void
}

export const id_middle = '0102030405'

/** Where a history is kept between its engines. */
export interface Disk {
  open(): Promise<Tree>
  /** Of the tree that was opened last. */
  close(): Promise<void>
  remove(): Promise<void>
}

export function memoryDisk(): Disk {
  const tree = memoryTree()
  return { open: async () => tree, close: async () => {}, remove: async () => {} }
}

/** A data file with its commit log. */
export async function fileDisk(): Promise<Disk> {
  const folder = await quickFolder('conveyor-model-')
  const path = join(folder, 'tasks.lmdb')
  let close = async (): Promise<void> => {}
  return {
    async open() {
      const below = await openInProcess(path, { backup_mark: copy_mark })
      const tree = await openCommitLogTree(below, path, {
        id: Buffer.alloc(commit_log_id_bytes, 1),
        claim: (found) =>
          found.get(metaKey('format')) === undefined ? changesOf(new_file) : undefined,
        ...{ blocking: true, reserve_bytes: 0, checkpoint_bytes: 2 ** 24, emit() {} },
      })
      close = async () => {
        await tree.close()
        await below.close()
      }
      return tree
    },
    close: () => close(),
    remove: () => rm(folder, { recursive: true, force: true }),
  }
}

const new_file: readonly (readonly [Key, Buffer])[] = [
  [metaKey('format'), Buffer.from('3')],
  [metaKey('file_id'), Buffer.from('12345678')],
  [metaKey('id_middle'), Buffer.from(id_middle, 'hex')],
]

export interface ModelHarness {
  readonly clock: FakeClock
  readonly held: Held[]
  engine: Engine
  open(): Promise<void>
  close(): Promise<void>
  /** The next commit breaks the disk: `lost`, or `kept` and its answer lost. */
  breakAtNextCommit(how: 'lost' | 'kept' | undefined): void
  /** Whether the disk has broken since it was asked for. */
  isBroken(): boolean
  /** Ends a broken engine and opens another one on what was written. */
  reopenBroken(): Promise<void>
  /** Resolves with true once nothing moves by itself, with false if that takes too many commits. */
  settled(commits_max: number): Promise<boolean>
}

/** Turns of the event loop without a commit after which nothing is under way. */
const quiet_turns = 8

export async function modelHarness(
  disk: Disk,
  model_limits: ModelLimits,
  handled_title: string,
): Promise<ModelHarness> {
  const clock = fakeClock()
  const held: Held[] = []
  let how: 'lost' | 'kept' | undefined
  let is_broken = false
  let committing = 0
  let commits = 0
  const limits = limitsWith({
    ...model_limits,
    ...{ drain_ms_max: 0, changes_kept_ms: 1e12, changes_bytes_max: 2 ** 30, jobs_max: 10_000 },
  })
  const harness: ModelHarness = {
    ...{ clock, held, engine: undefined as unknown as Engine },
    open,
    async close() {
      await harness.engine.close().catch((error: unknown) => {
        if (!is_broken) throw error
      })
      await disk.close()
    },
    breakAtNextCommit(given) {
      how = given
    },
    isBroken: () => is_broken,
    async reopenBroken() {
      await harness.close()
      how = undefined
      is_broken = false
      await open()
    },
    async settled(commits_max) {
      const began = commits
      let seen = commits
      for (let quiet = 0; quiet < quiet_turns; ) {
        await new Promise((resolve) => setImmediate(resolve))
        const wake_ms = clock.nextWake_ms()
        const moves = committing > 0 || commits !== seen || (wake_ms ?? Infinity) <= clock.now_ms()
        quiet = moves && !is_broken ? 0 : quiet + 1
        seen = commits
        // Each is counted as it begins and as it ends.
        if (commits - began > 2 * commits_max) return false
      }
      return true
    },
  }

  async function open(): Promise<void> {
    held.length = 0
    const below = await disk.open()
    if (below.get(metaKey('format')) === undefined) await below.commit(changesOf(new_file))
    const tree: Tree = {
      ...below,
      async commit(changes) {
        if (is_broken) throw new Error('the disk is broken')
        committing++
        commits++
        try {
          if (how !== undefined) is_broken = true
          if (how !== 'lost') await below.commit(changes)
          if (how !== undefined) throw new Error('the disk is broken')
        } finally {
          committing--
          commits++
        }
      },
      close: async () => {},
    }
    let failure: Fault | undefined
    const store = storeOf(tree, {
      onFail: (told) => {
        failure = told
      },
    })
    const given = Object.fromEntries(
      [...handled_types, handled_title].map((name) => [name, async () => ({})]),
    )
    const handlers = newHandlers({ clock, limits, given })
    const chance = { bytes: (count: number) => Buffer.alloc(count, 7), fraction: () => fraction }
    harness.engine = await startEngine({
      ...{ events: newEvents(undefined, clock), path: ':memory:', store, limits, clock, chance },
      ...{ key_path: undefined, failure: () => failure, failed: new Promise<Fault>(() => {}) },
      options: { secret_key: '11'.repeat(32), variables },
      ...{ handlers, executors: holdingExecutors() },
    })
  }

  function holdingExecutors(): Executors {
    const own: Held[] = []
    const hold = (order: JobOrder, job: EngineJob): Promise<JobOutcome> =>
      new Promise((resolve) => {
        const one: Held = {
          order,
          job,
          answer(outcome) {
            held.splice(held.indexOf(one), 1)
            resolve(outcome)
          },
        }
        own.push(one)
        held.push(one)
      })
    return {
      code: hold,
      call: hold,
      db: hold,
      handler: hold,
      retryOf(order) {
        if (order.job === 'call') return order.request.retry
        return { attempts_max: order.job === 'code' ? 1 : handler_attempts_max, backoff_ms }
      },
      allowCalls() {},
      limitKeys: () => [],
      acquire: () => ({ release() {} }),
      async close() {},
    }
  }
  await open()
  return harness
}
