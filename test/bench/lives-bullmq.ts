/**
 * Whole lives on BullMQ, with a Redis that syncs every write. A create adds a job that is delayed by
 * the time of our timer. A callback finds the job by its id, merges the data in the caller, writes it
 * back and promotes the job: two commands that are sent together. A worker in the same process then
 * takes the job to its end, which is kept, after the answer. Without a worker, an outside message
 * cannot end a job that nobody has fetched.
 */
import { serveLives } from './cluster/lives-calls.ts'
import { loadPackage } from './rival-packages.ts'
import { timer_s } from './workload.ts'

interface Job {
  readonly data: object
  updateData(data: object): Promise<void>
  promote(): Promise<void>
}

interface Queue {
  add(name: string, data: object, options: { jobId: string; delay: number }): Promise<Job>
  getJob(id: string): Promise<Job | undefined>
  close(): Promise<void>
}

interface Worker {
  on(event: 'completed', listener: () => void): void
  on(event: 'error', listener: (error: unknown) => void): void
  close(): Promise<void>
}

interface BullMq {
  readonly Queue: new (name: string, options: object) => Queue
  readonly Worker: new (name: string, work: (job: Job) => Promise<void>, options: object) => Worker
}

const name = 'lives'
const delay = timer_s * 1_000
/** Jobs that the worker ends at once; it was no faster with more. */
const concurrency = 64

serveLives(async ({ packages, host, port }) => {
  const { Queue, Worker } = loadPackage<BullMq>(packages, 'bullmq')
  const connection = { host, port }
  const queue = new Queue(name, { connection })
  const worker = new Worker(name, async () => {}, { connection, concurrency })
  let ended = 0
  worker.on('completed', () => ended++)
  worker.on('error', (error) => console.error(error))
  return {
    create: (ref, data) => queue.add('task', data, { jobId: idOf(ref), delay }),
    async callback(ref, data) {
      const job = await queue.getJob(idOf(ref))
      if (job === undefined) throw new Error(`${ref} does not exist`)
      await Promise.all([job.updateData({ ...job.data, ...data }), job.promote()])
    },
    ended: () => ended,
    async close() {
      await worker.close()
      await queue.close()
    },
  }
})

/** BullMQ refuses ids of digits alone, which it gives itself. */
const idOf = (ref: string): string => `t${ref}`
