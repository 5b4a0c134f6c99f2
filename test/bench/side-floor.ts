/**
 * The floors as sides: a listener without a store for the doors, LMDB by hand for the library.
 */
import { tasksOf } from './cells.ts'
import { startChild } from './child.ts'
import type { GrpcFloorCalls } from './floor-grpc.ts'
import type { HttpFloorCalls } from './floor-http.ts'
import type { StoreFloorCalls } from './floor-store.ts'
import type { BenchFolder } from './folder.ts'
import type { Group, Run, Side } from './side.ts'

export async function startFloor(run: Run, group: Group): Promise<Side> {
  if (group.server === 'in-process') return storeFloor(run, group)
  const { folder, scale, clients } = run
  const { port, stop } = await (group.server === 'http' ? listenHttp : listenGrpc)(folder)
  return {
    measure: (cell, span) =>
      clients.send('floor', cell, tasksOf(cell, scale), span, { port, secret }),
    stop,
  }
}

const secret = 'x'.repeat(43)

interface Listening {
  readonly port: number
  stop(): Promise<void>
}

async function listenHttp(folder: BenchFolder): Promise<Listening> {
  const child = startChild<HttpFloorCalls>(folder.script('floor-http'))
  const { port } = await child.call('listen', { secret })
  return { port, stop: child.stop }
}

async function listenGrpc(folder: BenchFolder): Promise<Listening> {
  const child = startChild<GrpcFloorCalls>(folder.script('floor-grpc'))
  const { port } = await child.call('listen', { tls_folder: folder.tls_folder })
  return { port, stop: child.stop }
}

async function storeFloor(run: Run, { file, refs, cells }: Group): Promise<Side> {
  const { folder, scale, templates } = run
  const child = startChild<StoreFloorCalls>(folder.script('floor-store'))
  if (file !== 'empty') {
    const tasks = tasksOf(cells[0] as (typeof cells)[number], scale)
    const path = await folder.copy(await templates.engine(tasks, refs))
    await child.call('open', { path, tasks, is_new: false, refs })
  }
  return {
    async measure(cell, span) {
      const { verb, ops, callers } = cell
      if (verb === 'read') throw new Error('the floor of the store does not read')
      if (file === 'empty') {
        const tasks = tasksOf(cell, scale)
        await child.call('open', { path: folder.newPath(), tasks, is_new: true, refs })
      }
      const slot = await child.call('run', { verb, ops, callers, ...span })
      if (file === 'empty') await child.call('close', { remove: true })
      return slot
    },
    async stop() {
      await child.call('close', { remove: true })
      await child.stop()
    },
  }
}
