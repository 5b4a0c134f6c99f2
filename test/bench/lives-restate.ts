/**
 * Whole lives on Restate, through its HTTP ingress. A create starts a workflow with the ref as its id,
 * which waits for a durable promise; a callback calls the handler that resolves the promise, and the
 * workflow ends with the message in its result, after the answer. Callers and the service that
 * Restate calls share this process.
 */
import { serveLives } from './cluster/lives-calls.ts'
import { registerService, restateIngress, startService } from './restate-service.ts'

serveLives(async ({ packages, port, admin_port }) => {
  const service = await startService(packages)
  await registerService(admin_port, service.port)
  const { create, resume, close } = restateIngress(port)
  return { create, callback: resume, ended: service.ended, close: async () => close() }
})
