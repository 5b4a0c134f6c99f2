/**
 * The n-th commit fails, for every n of a small history. Acknowledged ops stay, nothing is written
 * any more, reads go on, `onFailure` is called once, and no rejection is unhandled. After reopening
 * the file holds what was acknowledged, with or without the whole failed commit.
 */

import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { it } from 'node:test'
import type { OpResult } from '../src/core/model.ts'
import type { Engine } from '../src/engine/api/engine-api.ts'
import { memoryTree } from '../src/store/memory-tree.ts'
import type { Tree } from '../src/store/tree.ts'
import { openWithCommitLog } from './support/commit-log-setup.ts'
import { breakingTree } from './support/crash-tree.ts'
import { fakeClock } from './support/fake-clock.ts'
import { healthOf } from './support/health.ts'
import { engineOn } from './support/model-setup.ts'
import { node } from './support/processes.ts'
import { turns } from './support/store-trees.ts'
import { tasksOf } from './support/tasks-of.ts'

const lists = 4
const conv_id = 'p'
const waiting = {
  obj_id: conv_id,
  scheme: {
    nodes: [
      { id: 'start', obj_type: 1, condition: { logics: [{ type: 'go', to_node_id: 'wait' }] } },
      node('wait', 0, [{ type: 'api_callback' }], {
        semaphors: [{ type: 'time', value: 60, to_node_id: 'end' }],
      }),
      { id: 'end', obj_type: 2, options: '{"save_task":true}' },
    ],
  },
}

interface TreeRow {
  readonly on: string
  /** Opens the same tree again and again. */
  make(folder: string): Promise<() => Promise<Tree>>
}

const trees: readonly TreeRow[] = [
  {
    on: 'memory',
    make: async () => {
      const tree = memoryTree()
      return async () => tree
    },
  },
  { on: 'a file', make: async (folder) => () => openWithCommitLog(join(folder, 'tasks.lmdb')) },
]

for (const { on, make } of trees) {
  for (const writes_all of [false, true]) {
    for (let n = 1; n <= lists; n++) {
      const name = `${on}: commit ${n} ${writes_all ? 'is written and ' : ''}fails`
      it(name, async () => {
        const folder = await mkdtemp(join(tmpdir(), 'conveyor-failure-'))
        try {
          await failAt(await make(folder), n, writes_all)
        } finally {
          await rm(folder, { recursive: true, force: true })
        }
      })
    }
  }
}

async function failAt(openTree: () => Promise<Tree>, n: number, writes_all: boolean) {
  const clock = fakeClock()
  const first = await engineOn(await openTree(), { clock })
  await first.processes.put(waiting)
  await first.close()

  const failures: string[] = []
  const bugs: unknown[] = []
  const tree = breakingTree(await openTree(), n, writes_all)
  const engine = await engineOn(tree, {
    clock,
    onFailure: ({ code }) => failures.push(code),
    onBug: (error) => bugs.push(error),
  })
  const acked: string[] = []
  const caught: string[] = []
  for (let list = 0; list < lists; list++) {
    // Two lists sent at once share a commit, and its fate.
    const refs = [`${list}-a`, `${list}-b`]
    const codes = await Promise.all(refs.map((ref) => codeOf(createTwo(engine, ref))))
    if (list < n - 1) assert.deepEqual(codes, ['ok', 'ok'])
    else assert.deepEqual(codes, ['store_failed', 'store_failed'])
    if (list < n - 1) acked.push(...refs)
    else if (list === n - 1) caught.push(...refs)
  }
  assert.equal(tree.asked(), n, 'nothing is written after the failure')
  assert.deepEqual([failures, bugs, healthOf(engine)], [['store_failed'], [], 'store_failed'])
  await assert.rejects(engine.processes.put({ ...waiting, obj_id: 'q' }), { code: 'store_failed' })
  await assert.rejects(engine.users.add(), { code: 'store_failed' })
  const wanted = writes_all ? [...acked, ...caught] : acked
  assert.deepEqual(await refsIn(engine), both(wanted))

  clock.advance(60_000)
  await turns()
  assert.deepEqual(await refsIn(engine), both(wanted), 'no timer of a broken store fires')
  await engine.close()
  await turns()

  await using again = await engineOn(await openTree(), { clock, background: false })
  assert.deepEqual(await refsIn(again), both(wanted))
  assert.deepEqual((await again.check()).breaches, [])
  const [result] = await createTwo(again, 'later')
  assert.equal(result?.proc, 'ok')
}

it('a timer whose commit fails reports the failure, and fires after reopening', async () => {
  const below = memoryTree()
  const clock = fakeClock()
  const failures: string[] = []
  const onFailure = ({ code }: { code: string }) => void failures.push(code)
  const first = await engineOn(below, { clock })
  await first.processes.put(waiting)
  await first.close()
  const engine = await engineOn(breakingTree(below, 2, false), { clock, onFailure })
  await createTwo(engine, 'r')
  clock.advance(60_000)
  await turns()
  assert.deepEqual(failures, ['store_failed'])
  assert.equal(await codeOf(createTwo(engine, 's')), 'store_failed')
  assert.equal((await tasksOf(engine, conv_id)).length, 2)
  await engine.close()

  await using again = await engineOn(below, { clock })
  await turns()
  assert.equal((await tasksOf(again, conv_id)).length, 0)
  assert.equal((await tasksOf(again, conv_id, { status: 'processed' })).length, 2)
})

function createTwo(engine: Engine, ref: string): Promise<OpResult[]> {
  const one = { type: 'create', obj: 'task', conv_id, data: { ref } }
  return engine.apply([
    { ...one, ref },
    { ...one, ref: `${ref}'` },
  ])
}

async function codeOf(done: Promise<unknown>): Promise<string> {
  try {
    await done
    return 'ok'
  } catch (error) {
    return (error as { code: string }).code
  }
}

async function refsIn(engine: Engine): Promise<(string | null)[]> {
  return (await tasksOf(engine, conv_id)).map(({ ref }) => ref)
}

const both = (refs: readonly string[]): string[] => refs.flatMap((ref) => [ref, `${ref}'`])
