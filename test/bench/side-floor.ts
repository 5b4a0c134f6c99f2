/**
 * The floors as sides: LMDB by hand for in-process cells, a listener without a store for servers.
 */
import { tasksOf } from './cells.ts'
import { startChild } from './child.ts'
import type { GrpcFloorCalls } from './floor-grpc.ts'
import type { HttpFloorCalls } from './floor-http.ts'
import type { BenchFolder } from './folder.ts'
import type { Group, Run, Side } from './side.ts'
import { startFileSide } from './side-file.ts'

export async function startFloor(run: Run, group: Group): Promise<Side> {
  if (group.server === 'in-process') return startFileSide(run, group)
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
