/**
 * BullMQ on a Redis that syncs every write. A create adds a job with the ref as its id; a modify finds
 * a waiting job by that id, merges the data in the caller and writes it back.
 */
import { serveCalls } from './child.ts'
import { fillWith, loadPackage, type RivalCalls, runLoad } from './rival-calls.ts'
import { dataOf, refOf } from './workload.ts'

interface Job {
  readonly data: object
  updateData(data: object): Promise<void>
}

interface Queue {
  add(name: string, data: object, options: { jobId: string }): Promise<Job>
  getJob(id: string): Promise<Job | undefined>
  close(): Promise<void>
}

interface BullMq {
  readonly Queue: new (name: string, options: object) => Queue
}

let queue: Queue | undefined
let stored_tasks = 0

const calls: RivalCalls = {
  async open({ packages, port, tasks }) {
    const { Queue } = loadPackage<BullMq>(packages, 'bullmq')
    queue = new Queue('bench', { connection: { host: '127.0.0.1', port } })
    await fillWith(tasks, create)
    stored_tasks = tasks
  },

  run: (load) => runLoad(load, stored_tasks, { create, modify }),

  async close() {
    await queue?.close()
  },
}

serveCalls(calls)

async function create(n: number): Promise<void> {
  await (queue as Queue).add('task', dataOf('create', n), { jobId: idOf(n) })
}

async function modify(n: number): Promise<void> {
  const job = await (queue as Queue).getJob(idOf(n))
  if (job === undefined) throw new Error(`${idOf(n)} does not exist`)
  await job.updateData({ ...job.data, ...dataOf('modify', n) })
}

/** BullMQ refuses ids of digits alone, which it gives itself. */
const idOf = (n: number): string => `t${refOf(n, 'random')}`
