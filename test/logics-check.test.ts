/**
 * `check` and the key families of queues, jobs and sums: each inconsistency is reported, whether it
 * shows from the index or from the task.
 */

import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { type Key, outboxKey, queueKey, sumKey, sumsOf } from '../src/codec/keys.ts'
import type { Engine } from '../src/engine/api/engine-api.ts'
import { openEngine } from '../src/open.ts'
import { fakeClock } from './support/fake-clock.ts'
import { openInProcess } from './support/in-process-tree.ts'
import { node } from './support/processes.ts'

const now_ms = 1_700_000_000_000
const definition = {
  obj_type: 1,
  obj_id: 5,
  scheme: {
    nodes: [
      node('s', 1, [
        { type: 'api_sum', extra: [{ id: '1', name: 'n', value: '1' }] },
        { type: 'api_queue' },
      ]),
    ],
  },
}

async function breachesAfter(
  change: (obj_id: string) => [key: Key, value: Buffer | null][],
): Promise<readonly string[]> {
  const folder = await mkdtemp(join(tmpdir(), 'conveyor-check-'))
  const path = join(folder, 'tasks.lmdb')
  const open = (): Promise<Engine> =>
    openEngine(path, { clock: fakeClock(now_ms), background: false })
  try {
    let engine = await open()
    await engine.processes.put(definition)
    const { obj_id = '' } = await engine.create({ conv_id: 5, data: {} })
    assert.deepEqual((await engine.check()).breaches, [])
    // So that LMDB has all of it: a close leaves a few last commits behind its pages.
    await engine.backup(join(folder, 'copy.lmdb'))
    await engine.close()
    const tree = await openInProcess(path)
    tree.commit((batch) => {
      for (const [key, value] of change(obj_id)) batch.put(key, value)
    })
    await tree.close()
    engine = await open()
    const { breaches } = await engine.check()
    await engine.close()
    return breaches.map((breach) => breach.replaceAll(obj_id, 'ID'))
  } finally {
    await rm(folder, { recursive: true })
  }
}

const none = Buffer.alloc(0)
const other = 'f'.repeat(24)

const rows: [
  name: string,
  change: (obj_id: string) => [Key, Buffer | null][],
  breaches: string[],
][] = [
  [
    'a task that its queue does not list',
    (obj_id) => [[queueKey('5', 's', now_ms, obj_id), null]],
    ['task ID is not listed in the queue of its node "s"'],
  ],
  [
    'a queue that lists a task at another time',
    (obj_id) => [[queueKey('5', 's', now_ms + 1, obj_id), none]],
    ['the queue "s" of 5 names task ID, not in it'],
  ],
  [
    'a queue of another node',
    () => [[queueKey('5', 'q', now_ms, other), none]],
    [`the queue "q" of 5 names task ${other}, not in it`],
  ],
  [
    'work of a task that has none',
    (obj_id) => [[outboxKey(now_ms, obj_id), none]],
    [`the work to do names task ID, which has none at ${now_ms}`],
  ],
  [
    'a sum of a process that is not there',
    () => [[sumKey('6', 'a', 'n'), Buffer.alloc(8)]],
    ['sum "n" in node "a" of 6: no such process'],
  ],
]

for (const [name, change, breaches] of rows) {
  test(name, async () => assert.deepEqual(await breachesAfter(change), breaches))
}

test('the sums of a process are one range of keys', () => {
  const { from, to } = sumsOf('5')
  const key = sumKey('5', 's', 'n')
  assert.ok(from <= key && key < to)
  for (const conv of ['4', '50', '6']) {
    const one = sumKey(conv, 's', 'n')
    assert.ok(one < from || one >= to)
  }
})
