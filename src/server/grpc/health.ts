/**
 * The standard health service (grpc.health.v1): SERVING while the engine accepts ops and the server
 * does not drain. A check asks the engine; a watch is notified within a second.
 */
import type { Server } from '@grpc/grpc-js'
import { HealthImplementation, service as healthService } from 'grpc-health-check'
import { systemClock } from '../../core/clock.ts'
import type { ServerContext } from './interceptor.ts'
import { service_name } from './schema.ts'

const refresh_every_ms = 1_000

/** Adds the service; the returned function stops its timer. */
export function addHealth(server: Server, context: ServerContext): () => void {
  const health = new HealthImplementation()
  const refresh = (): void => {
    const is_up = !context.draining && context.engine.health() === 'ok'
    const status = is_up ? 'SERVING' : 'NOT_SERVING'
    if (status === last_status) return
    last_status = status
    // The empty name is the server as a whole.
    for (const name of ['', service_name]) health.setStatus(name, status)
  }
  let last_status: string | undefined
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
  const keepFresh = (): void => {
    refresh()
    cancel = systemClock.wake_at(systemClock.now_ms() + refresh_every_ms, keepFresh)
  }
  keepFresh()
  return () => {
    refresh()
    cancel()
  }
}

/** The two handlers of the package that are wrapped. */
interface Handlers {
  readonly check: (call: unknown, callback: unknown) => void
  readonly watch: (call: WatchCall) => void
}

interface WatchCall {
  end(): void
  on(event: 'cancelled', fn: () => void): void
}
