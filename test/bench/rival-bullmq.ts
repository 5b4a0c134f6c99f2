/**
 * BullMQ on a Redis that syncs every write. A create adds a job under its ref; a modify finds a job
 * that waits by its ref, merges the data in the caller and writes it back.
 */
import { serveCalls } from './child.ts'
import { closedLoop } from './closed-loop.ts'
import { fillWith, loadPackage, type RivalCalls } from './rival-calls.ts'
import { dataOf, opSource, refOf } from './workload.ts'

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
let found = 0

const calls: RivalCalls = {
  async open({ packages, port, tasks }) {
    const { Queue } = loadPackage<BullMq>(packages, 'bullmq')
    queue = new Queue('bench', { connection: { host: '127.0.0.1', port } })
    await fillWith(tasks, create)
    found = tasks
  },

  run({ verb, callers, ...span }) {
    const source = opSource(found, 'random')
    return closedLoop({ callers, ops: 1, ...span }, async () => {
      const n = source.take(verb, 1)[0] as number
      await (verb === 'create' ? create : modify)(n)
    })
  },

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
  if (job === undefined) throw new Error(`${idOf(n)} is not there`)
  await job.updateData({ ...job.data, ...dataOf('modify', n) })
}

/** A name of digits alone would be taken for one that the queue has given. */
const idOf = (n: number): string => `t${refOf(n, 'random')}`
