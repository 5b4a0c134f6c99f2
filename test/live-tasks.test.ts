/**
 * The limit of live tasks of a process (`process_tasks_max`) over what a vector does not do: many
 * transactions, a reopening, bulk jobs, and processes that make tasks by themselves.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { settled } from '../src/testing.ts'
import { go, linesLogger, opened, processWith, waiting } from './support/handler-harness.ts'

const max = 50
const limits = { process_tasks_max: max, moves_per_transaction_max: 20 }
const to_itself = { conv_id: 1, err_node_id: 'failed' }
const copy = { type: 'api_copy', mode: 'create', data: {}, ...to_itself }
const call = { type: 'api_rpc', extra: {}, extra_type: {}, ...to_itself }
const create = { type: 'create', obj: 'task', conv_id: 1, data: {} } as const
const creates = (count: number): object[] => Array.from({ length: count }, () => create)

// [what a process of these logics does, the logics, its live tasks at last, refused creates of 60]
const rows: [string, object[], number, number | undefined][] = [
  ['waits', waiting, max, 10],
  ['ends at once', [go('done')], 0, 0],
  ['copies itself and waits', [copy, ...waiting], max - 1, undefined],
  // Whose copy is refused goes to its error node and ends.
  // The last call fails, and with it each that waits for it.
  ['calls itself', [call, ...waiting], 0, undefined],
]

for (const [name, logics, live, refused] of rows) {
  test(`a process that ${name} has at most its limit of live tasks`, async () => {
    const { engine } = await opened({ limits })
    await engine.processes.put(processWith(logics))
    let most = 0
    const counted = (async () => {
      for await (const _change of engine.changes()) {
        const [process] = await engine.processes.list()
        most = Math.max(most, process?.tasks ?? 0)
      }
    })()
    const results = await engine.apply(creates(60))
    await settled(engine)
    const [process] = await engine.processes.list()
    assert.equal(process?.tasks, live)
    const over = results.filter(({ proc }) => proc === 'too_many_tasks')
    if (refused !== undefined) assert.equal(over.length, refused)
    assert.deepEqual((await engine.check()).breaches, [])
    await engine.close()
    await counted
    assert.ok(most <= max, `${most} live tasks at once`)
  })
}

test('what is stored counts after a reopening, and each departure makes room for one', async () => {
  const { harness, engine: first } = await opened({ limits })
  await first.processes.put(processWith(waiting))
  await first.apply(creates(max))
  await first.close()
  const engine = await harness.open()
  const tried = async (): Promise<string> => (await engine.create({ conv_id: 1, data: {} })).proc
  assert.equal(await tried(), 'too_many_tasks')
  const { tasks } = await engine.tasks.list({ conv_id: 1 })
  for (const { obj_id } of tasks.slice(0, 3)) await engine.modify({ conv_id: 1, obj_id, data: {} })
  assert.deepEqual([await tried(), await tried(), await tried()], ['ok', 'ok', 'ok'])
  assert.equal(await tried(), 'too_many_tasks')
  await engine.tasks.bulk({ action: 'cancel', filter: { conv_id: 1 } } as never)
  await settled(engine)
  assert.equal(await tried(), 'ok')
  await engine.close()
})

test('a process without room leaves one line in a minute, and other processes go on', async () => {
  const logger = linesLogger()
  const { engine, clock } = await opened({ limits, logger })
  for (const obj_id of [1, 2]) await engine.processes.put(processWith(waiting, {}, { obj_id }))
  for (const refused of [20, 10, 10]) {
    if (refused === 10) clock.advance(31_000)
    await engine.apply(creates(refused === 20 ? max + refused : refused))
  }
  const full = logger.lines.filter(([, fields]) => 'tasks' in fields)
  const line = ['error', { event: 'process_full', conv_id: '1', tasks: max }]
  assert.deepEqual(full, [line, line])
  assert.equal((await engine.create({ conv_id: 2, data: {} })).proc, 'ok')
  await engine.close()
})

test('0 sets no limit', async () => {
  const { engine } = await opened({ limits: { process_tasks_max: 0 } })
  await engine.processes.put(processWith(waiting))
  const results = await engine.apply(creates(100))
  assert.ok(results.every(({ proc }) => proc === 'ok'))
  await engine.close()
})
