/**
 * The standard health service (grpc.health.v1): SERVING while the engine is ready and the server
 * does not drain. A check asks the engine, whose answer is at most a second old; a watcher is
 * notified within one more second. Polls the engine only while at least one watcher is subscribed.
 */
import { type Server, type StatusObject, status } from '@grpc/grpc-js'
import { HealthImplementation, service as healthService } from 'grpc-health-check'
import { systemClock } from '../../core/clock.ts'
import { only_reads } from '../../engine/served-engine.ts'
import type { ServerContext } from './call.ts'
import { service_name } from './schema.ts'

const refresh_every_ms = 1_000

/** Adds the service; the returned function stops its timer. */
export function addHealth(server: Server, context: ServerContext): () => void {
  const health = new HealthImplementation()
  let watchers = 0
  const refresh = (is_ready: boolean): void => {
    const is_up = !context.draining && is_ready
    const served = is_up ? 'SERVING' : 'NOT_SERVING'
    if (served === last_status) return
    last_status = served
    // The empty name is the server as a whole.
    for (const name of ['', service_name]) health.setStatus(name, served)
  }
  let last_status: string | undefined
  const refreshByEngine = async (): Promise<void> => refresh((await context.engine.ready()).ok)
  refresh(context.engine.health() === 'ok')
  health.addToServer({
    addService(_service, given) {
      const handlers = given as unknown as Handlers
      server.addService(healthService, {
        ...given,
        check: (call: unknown, callback: (refusal: Partial<StatusObject>) => void) => {
          // A client in search of the owner must not mistake a standby for an unready owner.
          if (context.engine.staleness !== undefined) {
            return callback({ code: status.UNAVAILABLE, details: only_reads })
          }
          void refreshByEngine().finally(() => handlers.check(call, callback))
        },
        watch: (call: WatchCall) => {
          const end = (): void => void call.end()
          context.drain_callbacks.add(end)
          let is_over = false
          watchers++
          call.on('cancelled', () => {
            is_over = true
            watchers--
            context.drain_callbacks.delete(end)
          })
          // The first message carries the present status.
          void refreshByEngine().finally(() => {
            if (!is_over) handlers.watch(call)
          })
        },
      })
    },
  })
  let cancel = (): void => {}
  const keepFresh = (): void => {
    if (watchers > 0) void refreshByEngine()
    cancel = systemClock.wake_at(systemClock.now_ms() + refresh_every_ms, keepFresh)
  }
  keepFresh()
  return () => {
    refresh(false)
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
