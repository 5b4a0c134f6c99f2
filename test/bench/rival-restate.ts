/**
 * Restate behind its HTTP ingress. A create starts a workflow with the ref as its id, which waits for
 * a durable promise; a resume calls the handler that resolves the promise. A promise is resolved
 * once, so each task is resumed once. The service that Restate calls runs in a process of its own.
 */
import { serveCalls } from './child.ts'
import { closedLoop } from './closed-loop.ts'
import { type Ingress, registerService, restateIngress, startService } from './restate-service.ts'
import { fillWith, type RivalCalls } from './rival-calls.ts'
import { dataOf, refOf } from './workload.ts'

export type RestateCalls = typeof calls

let ingress: Ingress | undefined
let created = 0
let resumed = 0

const calls = {
  /** Starts the service that runs the workflow; returns its port. */
  async serve({ packages }: { packages: string }): Promise<number> {
    return (await startService(packages)).port
  },

  register: ({ admin_port, service_port }: { admin_port: number; service_port: number }) =>
    registerService(admin_port, service_port),

  async open({ port, tasks }) {
    ingress = restateIngress(port)
    await fillWith(tasks, create)
  },

  run({ verb, callers, ...span }) {
    const requests_max = verb === 'create' ? Number.POSITIVE_INFINITY : created - resumed
    return closedLoop({ callers, ops: 1, ...span, requests_max }, async () => {
      if (verb === 'create') await create()
      else await resume(resumed++)
    })
  },

  async close() {
    ingress?.close()
  },
} satisfies RivalCalls & Record<string, unknown>

serveCalls(calls)

async function create(): Promise<void> {
  const n = created++
  await ingress?.create(refOf(n, 'random'), dataOf('create', n))
}

async function resume(n: number): Promise<void> {
  await ingress?.resume(refOf(n, 'random'), dataOf('modify', n))
}
