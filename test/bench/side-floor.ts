/**
 * The floors as sides: a listener without a store for the doors, LMDB by hand for the library.
 */
import { tasksOf } from './cells.ts'
import { startChild } from './child.ts'
import type { GrpcFloorCalls } from './floor-grpc.ts'
import type { HttpFloorCalls } from './floor-http.ts'
import type { StoreFloorCalls } from './floor-store.ts'
import type { Place } from './place.ts'
import type { Group, Run, Side } from './side.ts'

export async function startFloor(run: Run, group: Group): Promise<Side> {
  if (group.server === 'in-process') return storeFloor(run, group)
  const { place, scale, loads } = run
  const { port, stop } = await (group.server === 'http' ? listenHttp : listenGrpc)(place)
  return {
    measure: (cell, span) =>
      loads.send('floor', cell, tasksOf(cell, scale), span, { port, secret }),
    stop,
  }
}

const secret = 'x'.repeat(43)

interface Listening {
  readonly port: number
  stop(): Promise<void>
}

async function listenHttp(place: Place): Promise<Listening> {
  const child = startChild<HttpFloorCalls>(place.child('floor-http'))
  const { port } = await child.ask('listen', { secret })
  return { port, stop: child.stop }
}

async function listenGrpc(place: Place): Promise<Listening> {
  const child = startChild<GrpcFloorCalls>(place.child('floor-grpc'))
  const { port } = await child.ask('listen', { tls_folder: place.tls_folder })
  return { port, stop: child.stop }
}

async function storeFloor(run: Run, { file, refs, cells }: Group): Promise<Side> {
  const { place, scale, templates } = run
  const child = startChild<StoreFloorCalls>(place.child('floor-store'))
  if (file !== 'empty') {
    const tasks = tasksOf(cells[0] as (typeof cells)[number], scale)
    const path = await place.copy(await templates.engine(tasks, refs))
    await child.ask('open', { path, tasks, fresh: false, refs })
  }
  return {
    async measure(cell, span) {
      const { verb, ops, callers } = cell
      if (verb === 'read') throw new Error('the floor of the store does not read')
      if (file === 'empty') {
        const tasks = tasksOf(cell, scale)
        await child.ask('open', { path: place.newPath(), tasks, fresh: true, refs })
      }
      const slot = await child.ask('run', { verb, ops, callers, ...span })
      if (file === 'empty') await child.ask('close', { remove: true })
      return slot
    },
    async stop() {
      await child.ask('close', { remove: true })
      await child.stop()
    },
  }
}
