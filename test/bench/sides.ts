/**
 * Ours and its floor, for one cell at a time: which child does what, and on which file.
 *
 * The in-process engine, the engines behind HTTP and gRPC and LMDB by hand each live in a child of
 * their own and have their own copy of the large file, which stays open through all its cells; a
 * small file is made for each slot and goes after it. The clients are children too.
 */
import { type Cell, nameOf, type Scale, type ServerName, serverOf } from './cells.ts'
import { type Child, startChild } from './child.ts'
import type { EngineCalls, Stats } from './engine-child.ts'
import type { GrpcFloorCalls } from './floor-grpc.ts'
import type { HttpFloorCalls } from './floor-http.ts'
import type { StoreFloorCalls } from './floor-store.ts'
import { type Server, startLoads } from './loads.ts'
import type { Place } from './place.ts'
import type { Slot } from './samples.ts'

/** A slot of ours, with what the engine's process and file looked like behind it. */
export interface OurSlot extends Slot {
  readonly stats: Stats
  /** Commits of LMDB during the slot. */
  readonly commits: number
}

export interface Sides {
  ours(cell: Cell, slot_s: number): Promise<OurSlot>
  floor(cell: Cell, slot_s: number): Promise<Slot>
  /**
   * Fills a file and copies it for each child that has a cell to come. Answers how long the filling
   * took, and its size.
   */
  makeLarge(cells: readonly Cell[]): Promise<{ readonly seconds: number; readonly stats: Stats }>
  stop(): Promise<void>
}

/** `profile`: a folder in which the engines' processes leave their CPU profiles. */
export function startSides(place: Place, scale: Scale, profile: string | undefined): Sides {
  const flags = profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profile}`]
  const startEngine = (): Child<EngineCalls> => startChild(place.child('engine-child'), flags)
  const engines: Record<ServerName, Child<EngineCalls>> = {
    'in-process': startEngine(),
    http: startEngine(),
    grpc: startEngine(),
  }
  const { tls_folder } = place
  const http_floor = startChild<HttpFloorCalls>(place.child('floor-http'))
  const grpc_floor = startChild<GrpcFloorCalls>(place.child('floor-grpc'))
  const store_floor = startChild<StoreFloorCalls>(place.child('floor-store'))
  const loads = startLoads(place)
  const secret = 'x'.repeat(43)
  const floor_ports = {
    http: http_floor.ask('listen', { secret }),
    grpc: grpc_floor.ask('listen', { tls_folder }),
  }
  const large = new Map<ServerName, Server>()

  const tasksIn = (cell: Cell): number =>
    cell.file === 'large' ? scale.many_tasks : cell.verb === 'modify' ? scale.few_tasks : 0

  async function ours(cell: Cell, slot_s: number): Promise<OurSlot> {
    const name = serverOf(cell)
    const engine = engines[name]
    const path = place.newPath()
    const tasks = tasksIn(cell)
    const server =
      large.get(name) ??
      (await engine.ask('open', { path, tasks, fresh: true, server: name, tls_folder }))
    const before = await engine.ask('stats')
    const { verb, ops, callers } = cell
    const slot =
      name === 'in-process'
        ? await engine.ask('run', { verb, ops, callers, slot_s })
        : await loads.send('ours', cell, tasks, slot_s, server)
    const stats = await engine.ask('stats')
    const made = stats.tasks - before.tasks
    if (made !== (verb === 'create' ? slot.ops : 0)) {
      throw new Error(`${nameOf(cell)}: ${slot.ops} ops answered ok, ${made} tasks more`)
    }
    if (!large.has(name)) await engine.ask('close', { remove: true })
    return { ...slot, stats, commits: stats.commits - before.commits }
  }

  async function floor(cell: Cell, slot_s: number): Promise<Slot> {
    const name = serverOf(cell)
    const tasks = tasksIn(cell)
    if (name !== 'in-process') {
      const { port } = await floor_ports[name]
      return loads.send('floor', cell, tasks, slot_s, { port, secret })
    }
    const is_small = cell.file === 'empty'
    if (is_small) await store_floor.ask('open', { path: place.newPath(), tasks, fresh: true })
    const { verb, ops, callers } = cell
    const slot = await store_floor.ask('run', { verb, ops, callers, slot_s })
    if (is_small) await store_floor.ask('close', { remove: true })
    return slot
  }

  return {
    ours,
    floor,
    async makeLarge(cells) {
      const filler = engines['in-process']
      const path = place.newPath()
      const tasks = scale.many_tasks
      const opening = { path, tasks, tls_folder }
      const start_ms = performance.now()
      await filler.ask('open', { ...opening, fresh: true, server: 'in-process' })
      const seconds = (performance.now() - start_ms) / 1000
      const stats = await filler.ask('stats')
      await filler.ask('close', { remove: false })
      const names = new Set(cells.map(serverOf))
      for (const server of names) {
        const copied = { ...opening, path: await place.copy(path), fresh: false, server }
        large.set(server, await engines[server].ask('open', copied))
      }
      if (names.has('in-process')) {
        await store_floor.ask('open', { path: await place.copy(path), tasks, fresh: false })
      }
      return { seconds, stats }
    },
    async stop() {
      const children = [...Object.values(engines), http_floor, grpc_floor, store_floor]
      await Promise.all([loads.stop(), ...children.map((child) => child.stop())])
    },
  }
}
