/**
 * Ours and its floor, for one cell at a time: which child does what, and on which file.
 *
 * The in-process engine, the engine behind HTTP and LMDB by hand each live in a child of their own
 * and have their own copy of the large file, which stays open through all its cells; a small file
 * is made for each slot and goes after it. The client is a child too.
 */
import type { Cell, DoorName, Scale } from './cells.ts'
import { guessedRate, nameOf } from './cells.ts'
import { type Child, startChild } from './child.ts'
import type { ClientCalls } from './client.ts'
import type { EngineCalls, Stats } from './engine-child.ts'
import type { HttpFloorCalls } from './floor-http.ts'
import type { StoreFloorCalls } from './floor-store.ts'
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
  /** Fills a file and copies it for each child. Answers how long the filling took, and its size. */
  makeLarge(): Promise<{ readonly seconds: number; readonly stats: Stats }>
  stop(): Promise<void>
}

interface Server {
  readonly port: number
  readonly secret: string
}

/** `profile`: a folder in which the engines' processes leave their CPU profiles. */
export function startSides(place: Place, scale: Scale, profile: string | undefined): Sides {
  const flags = profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profile}`]
  const engines: Record<DoorName, Child<EngineCalls>> = {
    'in-process': startChild<EngineCalls>(place.child('engine-child'), flags),
    http: startChild<EngineCalls>(place.child('engine-child'), flags),
  }
  const http_floor = startChild<HttpFloorCalls>(place.child('floor-http'))
  const store_floor = startChild<StoreFloorCalls>(place.child('floor-store'))
  const client = startChild<ClientCalls>(place.child('client'))
  const floor_secret = 'x'.repeat(43)
  const floor_port = http_floor.ask('listen', { secret: floor_secret })
  const large = new Map<Child<EngineCalls>, Server>()
  const rates = new Map<string, number>()

  const tasksIn = (cell: Cell): number =>
    cell.file === 'large' ? scale.many_tasks : cell.verb === 'modify' ? scale.few_tasks : 0

  /** Signs as many requests as the slot will need at the rate of the last one, and sends them. */
  async function overHttp(side: string, cell: Cell, slot_s: number, to: Server): Promise<Slot> {
    const { verb, ops, callers } = cell
    const key = `${side} ${nameOf(cell)}`
    const rate = rates.get(key) ?? guessedRate(cell)
    const requests = Math.ceil(callers + 2 * rate * slot_s)
    await client.ask('prepare', { verb, ops, requests, tasks: tasksIn(cell), secret: to.secret })
    const slot = await client.ask('run', { port: to.port, callers, ops, slot_s })
    rates.set(key, slot.requests / slot.seconds)
    return slot
  }

  async function ours(cell: Cell, slot_s: number): Promise<OurSlot> {
    const engine = engines[cell.door]
    const is_http = cell.door === 'http'
    const server =
      large.get(engine) ??
      (await engine.ask('open', {
        path: place.newPath(),
        tasks: tasksIn(cell),
        fresh: true,
        http: is_http,
      }))
    const before = await engine.ask('stats')
    const { verb, ops, callers } = cell
    const slot = is_http
      ? await overHttp('ours', cell, slot_s, server)
      : await engine.ask('run', { verb, ops, callers, slot_s })
    const stats = await engine.ask('stats')
    const made = stats.tasks - before.tasks
    if (made !== (verb === 'create' ? slot.ops : 0)) {
      throw new Error(`${nameOf(cell)}: ${slot.ops} ops answered ok, ${made} tasks more`)
    }
    if (!large.has(engine)) await engine.ask('close', { remove: true })
    return { ...slot, stats, commits: stats.commits - before.commits }
  }

  async function floor(cell: Cell, slot_s: number): Promise<Slot> {
    if (cell.door === 'http') {
      const { port } = await floor_port
      return overHttp('floor', cell, slot_s, { port, secret: floor_secret })
    }
    const is_small = cell.file === 'empty'
    if (is_small) {
      await store_floor.ask('open', { path: place.newPath(), tasks: tasksIn(cell), fresh: true })
    }
    const { verb, ops, callers } = cell
    const slot = await store_floor.ask('run', { verb, ops, callers, slot_s })
    if (is_small) await store_floor.ask('close', { remove: true })
    return slot
  }

  return {
    ours,
    floor,
    async makeLarge() {
      const engine = engines['in-process']
      const path = place.newPath()
      const tasks = scale.many_tasks
      const start_ms = performance.now()
      await engine.ask('open', { path, tasks, fresh: true, http: false })
      const seconds = (performance.now() - start_ms) / 1000
      const stats = await engine.ask('stats')
      await engine.ask('close', { remove: false })
      for (const [door, child] of Object.entries(engines)) {
        const http = door === 'http'
        const opening = { path: await place.copy(path), tasks, fresh: false, http }
        large.set(child, await child.ask('open', opening))
      }
      await store_floor.ask('open', { path: await place.copy(path), tasks, fresh: false })
      return { seconds, stats }
    },
    async stop() {
      const children = [...Object.values(engines), http_floor, store_floor, client]
      await Promise.all(children.map((child) => child.stop()))
    },
  }
}
