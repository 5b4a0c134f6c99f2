/**
 * graphile-worker. A create adds a job for an hour from now, with the ref as its key; a callback
 * replaces the job of that key by one that carries the message and is due. No worker runs, so what
 * executing and removing a job costs is left out.
 */
import { loadPackage } from '../rival-packages.ts'
import { serveLives } from './lives-calls.ts'

interface Utils {
  migrate(): Promise<void>
  addJob(task: string, payload: object, options: { jobKey: string; runAt?: Date }): Promise<object>
  release(): Promise<void>
}

interface GraphileWorker {
  makeWorkerUtils(options: object): Promise<Utils>
}

const task = 'life'
const wait_ms = 3_600_000

serveLives(async ({ packages, host, port }) => {
  const { makeWorkerUtils } = loadPackage<GraphileWorker>(packages, 'graphile-worker')
  const utils = await makeWorkerUtils({
    connectionString: `postgres://postgres@${host}:${port}/postgres`,
  })
  await utils.migrate()
  return {
    create: (jobKey, data) =>
      utils.addJob(task, data, { jobKey, runAt: new Date(Date.now() + wait_ms) }),
    callback: (jobKey, data) => utils.addJob(task, data, { jobKey }),
    close: () => utils.release(),
  }
})
