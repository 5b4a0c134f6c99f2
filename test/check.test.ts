/**
 * `check` names each breach of the key table (codec/keys): a row breaks one invariant in a sound
 * file, and says what is then named. Tasks that change while it runs are no breach.
 */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { idValue } from '../src/codec/ids.ts'
import {
  atNodeKey,
  dueKey,
  endedKey,
  failedKey,
  type Key,
  nodeCountKey,
  processKey,
  refKey,
  shapeKey,
  taskKey,
} from '../src/codec/keys.ts'
import { encodeCounts, noTasks } from '../src/codec/records.ts'
import { decodeTask, encodeTask } from '../src/codec/task-bytes.ts'
import type { TaskRecord } from '../src/codec/task-record.ts'
import type { Task } from '../src/core/model.ts'
import { callback, defineProcess, end, go, setData } from '../src/define.ts'
import { changesOf } from '../src/store/changes/change-buffer.ts'
import { memoryTree } from '../src/store/memory-tree.ts'
import { fakeClock } from './support/fake-clock.ts'
import { engineOn } from './support/model-setup.ts'

const shop = defineProcess({
  id: '1',
  nodes: {
    start: go('wait'),
    wait: [callback(), go('work')],
    work: [setData({ n: '{{amount}}' }, { types: { n: 'number' } }), go('end')],
    end: end({ save: true }),
  },
})
const empty = Buffer.alloc(0)

/** A sound file: two tasks wait, one has failed, two have ended, one was canceled. */
async function soundFile() {
  const tree = memoryTree()
  const clock = fakeClock()
  const engine = await engineOn(tree, { clock, background: false })
  await engine.processes.put(shop)
  const create = (ref: string, amount: string) =>
    engine.create({ conv_id: 1, ref, data: { amount } })
  const send = (ref: string) => engine.modify({ conv_id: 1, ref, data: {} })
  for (const ref of ['a', 'b', 'canceled']) await create(ref, '1')
  for (const ref of ['ended', 'again', 'again']) {
    await create(ref, '1')
    await send(ref)
    clock.advance(1)
  }
  await create('failed', 'none')
  await send('failed')
  await engine.tasks.cancel({ conv_id: 1, ref: 'canceled' })
  const task = async (ref: string) => (await engine.task({ conv_id: 1, ref })) as Task
  return { tree, engine, task }
}

type File = Awaited<ReturnType<typeof soundFile>>
type Changes = readonly (readonly [Key, Buffer | null])[]

const counts = (node: string, given: object): Changes => [
  [nodeCountKey('1', node), encodeCounts({ ...noTasks(), ...given })],
]

/** [what, the changes that break it, the breaches] */
// biome-ignore format: a table
const broken: readonly (readonly [string, (file: File) => Promise<Changes>, readonly RegExp[]])[] = [
  ['a ref of a live task is missing',
    async () => [[refKey('1', 'a'), null]],
    [/^task \w+ does not hold its ref "a"$/]],
  ['a ref of an ended task is missing',
    async () => [[refKey('1', 'ended'), null]],
    [/^task \w+ has ended and its ref is free$/]],
  ['a ref names the older of two ended tasks',
    async ({ engine }) => {
      const { tasks } = await engine.tasks.list({ conv_id: 1, ref_prefix: 'again' })
      const { tasks: ended } = await engine.tasks.list({ conv_id: 1, status: 'processed' })
      const older = ended.find(({ ref, obj_id }) => ref === 'again' && obj_id !== tasks[0]?.obj_id)
      return [[refKey('1', 'again'), Buffer.from(idValue((older as Task).obj_id))]]
    },
    [/^task \w+ has ended and its ref is free$/]],
  ['a ref names a task with another ref',
    async ({ task }) => [[refKey('1', 'x'), Buffer.from(idValue((await task('a')).obj_id))]],
    [/^ref "x" of 1 names no task with that ref$/]],
  ['a ref names no task',
    async () => [[refKey('1', 'x'), Buffer.alloc(12)]],
    [/^ref "x" of 1 names no task with that ref$/]],
  ['a failed task is not listed',
    async ({ task }) => {
      const { obj_id, change_time_ms } = await task('failed')
      return [[failedKey('1', change_time_ms, obj_id), null]]
    },
    [/^task \w+ has failed and is not listed at \d+$/]],
  ['a task is listed as failed and has not',
    async ({ task }) => [[failedKey('1', 5, (await task('a')).obj_id), empty]],
    [/^the failed of 1 list task \w+, which has not at 5$/]],
  ['a failed task is listed at another time too',
    async ({ task }) => [[failedKey('1', 5, (await task('failed')).obj_id), empty]],
    [/^the failed of 1 list task \w+, which has not at 5$/]],
  ['a counter has one status for another',
    async () => counts('wait', { processing: 2, canceled: 1 }),
    [/^node "wait" of 1 counts 2 processing and has 0, 0 delayed and has 2$/]],
  ['a counter of failed tasks is wrong',
    async () => counts('work', { failed: 2 }),
    [/^node "work" of 1 counts 2 failed and has 1$/]],
  ['a counter of ended tasks is wrong',
    async () => counts('end', { processed: 1, canceled: 300 }),
    [/^node "end" of 1 counts 1 processed and has 3, 300 canceled and has 0$/]],
  ['a counter is missing',
    async () => [[nodeCountKey('1', 'end'), null]],
    [/^node "end" of 1 counts 0 processed and has 3$/]],
  ['a counter counts tasks of a process that is not there',
    async () => [[nodeCountKey('2', 'end'), encodeCounts({ ...noTasks(), failed: 1 })]],
    [/^node "end" of 2 counts 1 failed and has 0$/]],
  ['a task is not listed in its node',
    async ({ task }) => [[atNodeKey('1', 'wait', (await task('a')).obj_id), null]],
    [/^task \w+ is not listed in its node "wait"$/]],
  ['an ended task is not in the sweep list',
    async ({ task }) => {
      const { obj_id, change_time_ms } = await task('ended')
      return [[endedKey('1', change_time_ms, obj_id), null]]
    },
    [/^task \w+ has ended and is not in the sweep list$/]],
  ['a timer names a task without one',
    async ({ task }) => [[dueKey('1', 5, (await task('a')).obj_id), empty]],
    [/^a timer of 1 names task \w+, which has none at 5$/]],
  ['a task is damaged: the counts of its process are left out',
    async ({ task }) => [
      [taskKey((await task('a')).obj_id), Buffer.from('damaged')],
      ...counts('end', { processed: 9 }),
    ],
    [/^task \w+ is damaged$/]],
  ['a task remembers a trace of zeros',
    async ({ tree, task }) => {
      const { obj_id } = await task('a')
      const record = decodeTask(obj_id, tree.get(taskKey(obj_id)) as Buffer) as TaskRecord
      const trace = { trace_id: '0'.repeat(32), span_id: '0'.repeat(16), flags: 1 }
      return [[taskKey(obj_id), Buffer.from(encodeTask({ ...record, trace }))]]
    },
    [/^task \w+ remembers a trace of zeros$/]],
  ['a shape has the number of another',
    async () => [[shapeKey('1', 7), Buffer.from('{"a":\0}')]],
    [/^shape 7 of 1 is another$/]],
  ['a process is gone',
    async () => [[processKey('1'), null]],
    [/^version 1 of 1: no such process$/, ...Array(3).fill(/^task \w+: no process 1$/)]],
]

describe('check names', () => {
  for (const [what, changesTo, expected] of broken) {
    it(what, async () => {
      const file = await soundFile()
      assert.deepEqual((await file.engine.check()).breaches, [])
      await file.tree.commit(changesOf(await changesTo(file)))
      const { breaches } = await file.engine.check()
      const said = breaches.join('\n')
      assert.equal(breaches.length, expected.length, said)
      for (const one of expected)
        assert.ok(
          breaches.some((breach) => one.test(breach)),
          said,
        )
      await file.engine.close()
    })
  }
})

it('check finds nothing while tasks change, and a wrong count in a node that rests', async () => {
  const { tree, engine } = await soundFile()
  const refs = Array.from({ length: 600 }, (_, n) => `r${n}`)
  const all = (type: string) =>
    engine.apply(refs.map((ref) => ({ type, obj: 'task', conv_id: 1, ref, data: { amount: '1' } })))
  let is_done = false
  const busy = (async () => {
    while (!is_done) {
      await all('create')
      await all('modify')
    }
  })()
  assert.deepEqual((await engine.check()).breaches, [])
  await tree.commit(changesOf([...counts('work', { failed: 7 })]))
  const { breaches } = await engine.check()
  is_done = true
  await busy
  assert.equal(breaches.length, 1, breaches.join('\n'))
  assert.match(breaches[0] as string, /^node "work" of 1 counts 7 failed/)
  await engine.close()
})
