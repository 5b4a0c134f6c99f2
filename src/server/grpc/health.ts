/**
 * The standard health service (grpc.health.v1) over the engine's own health: SERVING while ops
 * would be taken. A check asks the engine; a watch is told within a second.
 */
import type { Server } from '@grpc/grpc-js'
import { HealthImplementation, service as healthService } from 'grpc-health-check'
import { systemClock } from '../../core/clock.ts'
import type { ServerContext } from './interceptor.ts'
import { service_name } from './schema.ts'

const look_every_ms = 1_000

/** Adds the service; what comes back ends what it does beside answering. */
export function addHealth(server: Server, context: ServerContext): () => void {
  const health = new HealthImplementation()
  const refresh = (): void => {
    const is_up = !context.draining && context.engine.health() === 'ok'
    const status = is_up ? 'SERVING' : 'NOT_SERVING'
    if (status === told) return
    told = status
    // The empty name is the server as a whole.
    for (const name of ['', service_name]) health.setStatus(name, status)
  }
  let told: string | undefined
  refresh()
  health.addToServer({
    addService(_service, given) {
      const handlers = given as unknown as Handlers
      server.addService(healthService, {
        ...given,
        check: (call: unknown, callback: unknown) => {
          refresh()
          handlers.check(call, callback)
        },
        watch: (call: WatchCall) => {
          const end = (): void => void call.end()
          context.drain_callbacks.add(end)
          call.on('cancelled', () => context.drain_callbacks.delete(end))
          handlers.watch(call)
        },
      })
    },
  })
  let cancel = (): void => {}
  const look = (): void => {
    refresh()
    cancel = systemClock.wake_at(systemClock.now_ms() + look_every_ms, look)
  }
  look()
  return () => {
    refresh()
    cancel()
  }
}

/** What this file needs of the handlers that the package makes. */
interface Handlers {
  readonly check: (call: unknown, callback: unknown) => void
  readonly watch: (call: WatchCall) => void
}

interface WatchCall {
  end(): void
  on(event: 'cancelled', fn: () => void): void
}
