/**
 * pg-boss on PostgreSQL. A create sends a job; a resume changes the state of one that is found by
 * its id, to and fro. It has no call that gives a waiting job more data, so none is sent: less than
 * what ours does.
 */
import { serveCalls } from './child.ts'
import { closedLoop } from './closed-loop.ts'
import { fillWith, loadPackage, type RivalCalls } from './rival-calls.ts'
import { dataOf, opSource, refOf } from './workload.ts'

interface Boss {
  on(event: 'error', listener: (error: unknown) => void): void
  start(): Promise<unknown>
  stop(options: { graceful: boolean }): Promise<void>
  createQueue(name: string): Promise<void>
  send(name: string, data: object, options: { singletonKey: string }): Promise<string | null>
  cancel(name: string, id: string): Promise<void>
  resume(name: string, id: string): Promise<void>
}

type BossClass = new (options: object) => Boss

const queue = 'bench'
let boss: Boss | undefined
const ids: string[] = []
const cancelled = new Set<number>()

const calls: RivalCalls = {
  async open({ packages, port, tasks }) {
    const Boss = loadPackage<BossClass>(packages, 'pg-boss')
    boss = new Boss({
      connectionString: `postgres://bench@127.0.0.1:${port}/postgres`,
      supervise: false,
      schedule: false,
    })
    boss.on('error', (error) => console.error(error))
    await boss.start()
    await boss.createQueue(queue)
    await fillWith(tasks, async (n) => {
      ids[n] = await create(n)
    })
  },

  run({ verb, callers, ...span }) {
    const source = opSource(ids.length, 'random')
    return closedLoop({ callers, ops: 1, ...span }, async () => {
      const n = source.take(verb, 1)[0] as number
      if (verb === 'create') await create(n)
      else if (cancelled.delete(n)) await boss?.resume(queue, ids[n] as string)
      else {
        cancelled.add(n)
        await boss?.cancel(queue, ids[n] as string)
      }
    })
  },

  async close() {
    await boss?.stop({ graceful: false })
  },
}

serveCalls(calls)

async function create(n: number): Promise<string> {
  const options = { singletonKey: refOf(n, 'random') }
  const id = await (boss as Boss).send(queue, dataOf('create', n), options)
  if (id === null) throw new Error('pg-boss took no job')
  return id
}
