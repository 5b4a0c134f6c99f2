/**
 * What waiting tasks are said to wait for, on the page of a task, in a list and on the page of a
 * process: through the admin socket of the engine that does the jobs, and on the closed file, where
 * the last error of a job that is tried again is still known.
 */
import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { openEngine } from '../src/open.ts'
import { rowsOf, run, tempFolder } from './support/cli-run.ts'

const folder = tempFolder()
const db = join(folder.path, 'waits.lmdb')
const env = { CONVEYOR_DB: db, CONVEYOR_RUNTIME_DIR: join(folder.path, 'run') }
after(() => folder.remove())

const pause = { backoff_ms: 250_000 }
const node = (id: string, title: string, logics: object[], semaphors: object[] = []) => ({
  ...{ id, title, obj_type: 0 },
  condition: { logics: [...logics, { type: 'go', to_node_id: 'end' }], semaphors },
})

/** A process for each kind of wait: its start goes to the node. */
function processOf(obj_id: string, waiting: object): object {
  const start = { logics: [{ type: 'go', to_node_id: 'w' }], semaphors: [] }
  return {
    ...{ obj_type: 1, obj_id, title: obj_id, conv_type: 'process', status: 'active', params: [] },
    scheme: {
      nodes: [
        { id: 'start', obj_type: 1, title: 'Start', condition: start },
        waiting,
        { id: 'end', obj_type: 2, title: 'Done', condition: { logics: [], semaphors: [] } },
      ],
    },
  }
}

const hour = { type: 'time', value: 3600, dimension: 'sec', to_node_id: 'end' }
const callback = { type: 'api_callback', is_sync: false }
let port = 0

/** [process, its waiting node, what the page of a task says while a server has the file] */
const waits = (): readonly (readonly [string, object, RegExp])[] => [
  ['callback', node('w', 'Wait', [callback], [hour]), /^waits for +callback, timer 20\d\d-.*Z$/m],
  [
    'handled',
    node('w', 'Charge', [callback]),
    /^waits for +handler Charge, attempt 2, next try 20.*Z\nlast error +handler_error: the bank is shut$/m,
  ],
  [
    'called',
    node('w', 'Ask', [
      {
        ...{
          type: 'api',
          format: '',
          method: 'POST',
          url: `http://localhost:${port}/x?key=s3cret`,
        },
        ...{ extra: {}, extra_type: {}, err_node_id: 'end' },
        retry: { attempts_max: 3, ...pause },
      },
    ]),
    new RegExp(
      `^waits for +call to localhost:${port}, attempt 2, next try 20.*Z\nlast error +api_bad_answer`,
      'm',
    ),
  ],
  ['queued', node('w', 'Queue', [{ type: 'api_queue', data: {}, data_type: {} }]), /queue/],
]

before(async () => {
  // A port on which nothing listens.
  const taken = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => taken.once('listening', resolve))
  port = (taken.address() as { port: number }).port
  await new Promise((resolve) => taken.close(resolve))
})

test('each wait is told on the page of its task, in lists, and after a close', async () => {
  const engine = await openEngine(db, {
    ...{ admin: true, runtime_dir: env.CONVEYOR_RUNTIME_DIR, allow_hosts: [`localhost:${port}`] },
    handlers: {
      Charge: {
        handler() {
          throw new Error('the bank is shut')
        },
        ...pause,
      },
    },
  })
  const rows = waits()
  for (const [conv_id, waiting] of rows) {
    await engine.processes.put(processOf(conv_id, waiting))
    await engine.create({ conv_id, ref: 'r', data: { n: 1 } })
  }
  const text = async (line: string): Promise<string> => {
    const { exit, out, err } = await run(line.split(' '), { env })
    assert.equal(exit, 0, err)
    return out
  }
  const until = async (line: string, says: RegExp): Promise<string> => {
    for (;;) {
      const out = await text(line)
      if (says.test(out)) return out
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
  for (const [conv_id, , says] of rows) {
    const page = await until(`task show ${conv_id} r`, says)
    assert.match(page, /^node +\S+ \(w\)$/m)
    assert.doesNotMatch(page, /s3cret/)
  }
  assert.match(
    await text('task list handled'),
    /Charge +handler Charge, attempt 2, .*handler_error$/m,
  )
  assert.match(
    await text('process show callback'),
    /Wait +logic +1 +0 +0 +callback, timer +Done +w$/m,
  )
  assert.match(
    await text('process show callback'),
    /oldest live tasks.*\n.*\n.* Wait +callback, timer/,
  )
  const [shown] = rowsOf(await text('task show handled r --json')) as [Record<string, unknown>]
  assert.equal(shown.node_title, 'Charge')
  assert.equal(shown.status_details, undefined, 'it has not failed')
  assert.deepEqual((shown.wait as { last_error: object }).last_error, {
    ...{ tag: 'handler_error', description: 'the bank is shut' },
  })
  await engine.processes.pause('callback')
  assert.match(await text('task show callback r'), /^waits for +its process is paused, callback/m)
  await engine.close()
  const closed = await text('task show handled r')
  assert.match(
    closed,
    /^waits for +handler Charge, attempt 2, .*\nlast error +handler_error: the bank/m,
  )
  await text('task cancel handled r')
  const { out, err } = await run(['task', 'list', 'handled'], { env })
  assert.equal(out, '')
  assert.match(err, /no task is live, 1 ended: `conveyor task list handled --status any`/)
})

test('a node that waits for a handler that nobody has says so', async () => {
  const engine = await openEngine(join(folder.path, 'none.lmdb'), {
    ...{ admin: true, runtime_dir: env.CONVEYOR_RUNTIME_DIR, limits: { drain_ms_max: 0 } },
  })
  const removed = engine.handle('Charge', () => new Promise(() => {}))
  await engine.processes.put(processOf('1', node('w', 'Charge', [callback])))
  await engine.create({ conv_id: '1', ref: 'r', data: {} })
  removed()
  const { out } = await run(['task', 'show', '1', 'r', '--db', engine.path], { env })
  assert.match(out, /^waits for +handler Charge \(none is registered\)/m)
  await engine.close()
})
