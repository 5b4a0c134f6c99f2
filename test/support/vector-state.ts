/**
 * What a vector runs in: an engine with a clock moved by hand, its processes and users, and what
 * can be done to it from inside. Only a vector that reopens its engine gets a file.
 */
import assert from 'node:assert/strict'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { stringifyJson } from '../../src/codec/json.ts'
import { taskKey } from '../../src/codec/keys.ts'
import type { LimitName } from '../../src/core/limits.ts'
import type { JsonObject, JsonValue } from '../../src/core/model.ts'
import type { Engine } from '../../src/engine/api/engine-api.ts'
import type { Can } from '../../src/engine/api/process-api.ts'
import { openEngine } from '../../src/open.ts'
import { fakeChance, fakeClock } from './fake-clock.ts'
import { openInProcess } from './in-process-tree.ts'
import { quickFolder } from './store-folder.ts'
import { definitionOf, type Vector } from './vector-form.ts'

export interface World {
  engine(): Engine
  /** The user who calls where a step names none. */
  readonly first_user: string
  /** The secret with which a user's requests are signed. */
  secretOf(user: string): string
  /** Lets the clock jump by so much, or to that time, and rings what is due. */
  advance(by_ms: number): void
  setClock(now_ms: number): void
  /** Resolves when no timer is due any more and nothing is under way. */
  settle(): Promise<void>
  /** Lets nothing ring until released. */
  hold(): void
  release(): void
  /** The refs of the tasks that changed since the last call, in order. */
  takeChanges(): (string | null)[]
  /** Closes the engine, for so long, and opens it again on the same file. */
  reopen(closed_ms: number): Promise<void>
  /** Changes a byte of a stored task; reopens. */
  damage(obj_id: string): Promise<void>
  /** Closes the engine and removes its file; fails where it came across a bug. */
  close(): Promise<void>
}

interface GivenUser {
  readonly id: number
  readonly grants: readonly { readonly conv_id: string | number; readonly can?: Can[] }[]
}

export async function openWorld({ given, steps }: Vector): Promise<World> {
  const fake = fakeClock(given.now_ms as number | undefined)
  let asked = 0
  const clock = {
    ...fake,
    now_ms: () => {
      asked++
      return fake.now_ms()
    },
  }
  const chance = fakeChance()
  const bugs: unknown[] = []
  const needs_file = steps.some((step) => 'reopen' in step || 'damage' in step)
  const folder = needs_file ? await quickFolder('conveyor-vector-') : undefined
  const path = folder === undefined ? ':memory:' : join(folder, 'tasks.lmdb')
  const limits = (given.limits ?? {}) as Partial<Record<LimitName, number>>
  const open = (): Promise<Engine> =>
    openEngine(path, { clock, chance, limits, onBug: (bug) => bugs.push(bug) })

  let changes: (string | null)[] = []
  const openWatched = async (): Promise<Engine> => {
    const opened = await open()
    void (async () => {
      for await (const { ref } of opened.changes()) changes.push(ref)
    })()
    return opened
  }

  let engine = await openWatched()
  const convs: string[] = []
  for (const process of (given.processes ?? []) as JsonValue[]) {
    const { conv_id } = await engine.processes.put(stringifyJson(definitionOf(process)))
    convs.push(conv_id)
  }
  const secrets = new Map<string, string>()
  const users = given.users ?? [{ id: 13000, grants: convs.map((conv_id) => ({ conv_id })) }]
  for (const { id, grants } of users as unknown as GivenUser[]) {
    secrets.set(String(id), (await engine.users.add({ id })).secret)
    for (const { conv_id, can } of grants) await engine.processes.share(conv_id, id, can)
  }

  async function settle(): Promise<void> {
    for (;;) {
      const before = asked
      // A call that changes nothing comes back once all that it could have read is on disk.
      await engine.tasks.cancel({ conv_id: 'none', ref: 'none' })
      await setImmediate()
      const is_due = (clock.nextWake_ms() ?? Number.POSITIVE_INFINITY) <= fake.now_ms()
      if (asked === before + 1 && !is_due) return
    }
  }

  return {
    engine: () => engine,
    first_user: [...secrets.keys()][0] as string,
    secretOf: (user) => secrets.get(user) as string,
    advance: (by_ms) => clock.advance(by_ms),
    setClock(now_ms) {
      clock.set(now_ms)
      clock.advance(0)
    },
    settle,
    hold: () => fake.hold(),
    release: () => fake.release(),
    takeChanges() {
      const taken = changes
      changes = []
      return taken
    },
    async reopen(closed_ms) {
      await engine.close()
      clock.advance(closed_ms)
      engine = await openWatched()
    },
    async damage(obj_id) {
      // A backup merges the commit log, so that the close leaves no commits behind LMDB's pages.
      await engine.backup(`${path}-copy`)
      await engine.close()
      await damageTask(path, obj_id)
      engine = await openWatched()
    },
    async close() {
      await engine.close()
      if (folder !== undefined) await rm(folder, { recursive: true })
      assert.deepEqual(bugs, [])
    },
  }
}

async function damageTask(path: string, obj_id: string): Promise<void> {
  const tree = await openInProcess(path)
  const key = taskKey(obj_id)
  const bytes = Buffer.from(tree.get(key) as Buffer)
  bytes[bytes.length - 1] = (bytes[bytes.length - 1] as number) ^ 1
  tree.commit((batch) => batch.put(key, bytes))
  await tree.close()
}

/** The arguments of an admin step's task. */
export type TaskTarget = JsonObject & { conv_id: string | number; ref?: string; obj_id?: string }
