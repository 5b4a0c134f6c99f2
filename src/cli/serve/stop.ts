/**
 * How `serve` ends: by a stop signal or a failure of the engine, after a drain, or by a kill if a
 * write hangs, because no signal ends that.
 */
import { within } from '../../core/clock.ts'
import type { Emit } from '../../core/events.ts'
import type { Fault } from '../../core/faults.ts'
import type { Engine } from '../../engine/api/engine-api.ts'
import { servedEngine } from '../../engine/served-engine.ts'
import type { Io } from '../io.ts'
import type { RunningServers } from './servers.ts'

export interface Stop {
  /** Resolves with undefined on a stop signal, with the Fault when the engine fails. */
  readonly reason: Promise<Fault | undefined>
  readonly fail: (failure: Fault) => void
  /** How the engine failed, also after the reason: a close writes too. */
  failure(): Fault | undefined
  dispose(): void
}

export function newStop(io: Io): Stop {
  let resolve: (failure: Fault | undefined) => void = () => {}
  const reason = new Promise<Fault | undefined>((done) => {
    resolve = done
  })
  let failed: Fault | undefined
  const fail = (failure: Fault): void => {
    failed ??= failure
    resolve(failure)
  }
  return { reason, fail, failure: () => failed, dispose: io.onStop(() => resolve(undefined)) }
}

/** A close may take this many times `drain_ms_max`, because it checkpoints the commit log. */
const close_times_drain = 6

/**
 * Kills the process where a flush takes longer than `drain_ms_max` or the close does not finish.
 * Answered requests are not lost: they are in the commit log.
 */
export function killIfHung(engine: Engine, io: Io, log: { emit: Emit; close(): Promise<void> }) {
  const { drain_ms_max } = engine.limits
  const inTime = async (work: Promise<void>, ms_max: number): Promise<void> => {
    if ((await within(io.clock, ms_max, work)) !== 'late') return
    log.emit('write_hangs', { ms: ms_max })
    await log.close()
    io.kill()
  }
  return {
    flush: () => inTime(engine.flush(), drain_ms_max),
    close: () => inTime(engine.close(), close_times_drain * drain_ms_max),
  }
}

/** The result of `run`; in any case requests and jobs get the same `drain_ms_max` then. */
export async function untilEnd<T>(
  engine: Engine,
  servers: RunningServers,
  run: () => Promise<T>,
): Promise<T> {
  try {
    return await run()
  } finally {
    await Promise.all([servers.drain(), servedEngine(engine).drain()])
  }
}
