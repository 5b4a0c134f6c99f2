/**
 * pg-boss on PostgreSQL. A create sends a job; a modify finds a job by its id and cancels it, and the
 * next one resumes it. pg-boss cannot add data to a waiting job, so a modify carries none: less
 * work than on our side.
 */
import { serveCalls } from './child.ts'
import { fillWith, loadPackage, type RivalCalls, runLoad } from './rival-calls.ts'
import { dataOf, refOf } from './workload.ts'

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
      connectionString: `postgres://postgres@127.0.0.1:${port}/postgres`,
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

  run: (load) => runLoad(load, ids.length, { create, modify }),

  async close() {
    await boss?.stop({ graceful: false })
  },
}

serveCalls(calls)

async function create(n: number): Promise<string> {
  const options = { singletonKey: refOf(n, 'random') }
  const id = await (boss as Boss).send(queue, dataOf('create', n), options)
  if (id === null) throw new Error('pg-boss refused the job')
  return id
}

async function modify(n: number): Promise<void> {
  const id = ids[n] as string
  if (cancelled.delete(n)) return boss?.resume(queue, id)
  cancelled.add(n)
  return boss?.cancel(queue, id)
}
