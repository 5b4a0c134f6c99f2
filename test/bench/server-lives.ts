/**
 * The cells of whole lives beside engines that need a server of their own (see life-order.ts). All
 * sides sync a write before they answer it, and a slot includes what a side puts off until after its
 * answers: the close of our file, the ends of the tasks that the others were called back for.
 *
 * Ours has a new file in each slot. A rival's processes live as long as the run, and so stay warm; it
 * is frozen between its slots if it polls its server.
 */
import { startChild } from './child.ts'
import type { ClientLibraryCalls } from './client-library.ts'
import type { LivesCalls } from './cluster/lives-calls.ts'
import type { BenchFolder } from './folder.ts'
import type { LivesLoad } from './life-order.ts'
import type { HttpLivesCalls } from './lives-http.ts'
import type { Endpoint } from './load-clients.ts'
import { removeFiles } from './resource-usage.ts'
import { startBackend } from './rival-backends.ts'
import { packagesOf, rivalPackages, type ServerRivalName } from './rival-packages.ts'
import { type Slot, type Summary, summaryOf } from './statistics.ts'
import { spanSeconds } from './stopwatch.ts'

/** `client`: our client library over HTTP; `embedded`: the engine in the process of its callers. */
export type OurName = 'ours' | 'client' | 'embedded'
/** DBOS has two forms too: in the process of its callers, and behind HTTP. */
type RivalSideName = ServerRivalName | 'dbos-http'
type LivesSideName = OurName | RivalSideName

export interface ServerLivesLine {
  readonly kind: 'server-lives'
  readonly cell: string
  readonly sides: Readonly<Partial<Record<LivesSideName, LivesRates>>>
  /** Within a repetition. */
  readonly ratios: readonly (LivesRatio & { readonly lives_per_s: Summary })[]
}

interface LivesRates {
  readonly lives_per_s: Summary
  readonly p99_ms: Summary
}

interface LivesRatio {
  readonly ours: OurName
  readonly over: RivalSideName
  readonly wanted: number
}

/** Like against like: libraries, one op in an HTTP request, in one process. */
const compared: readonly LivesRatio[] = [
  { ours: 'client', over: 'bullmq', wanted: 3 },
  { ours: 'ours', over: 'dbos-http', wanted: 25 },
  { ours: 'embedded', over: 'dbos', wanted: 25 },
  { ours: 'ours', over: 'restate', wanted: 25 },
  { ours: 'client', over: 'restate', wanted: 25 },
]

export const server_lives_cell = 'lives/servers/1x64'
const callers = 64
const our_tasks = 20_000
/** Of a rival: a task that waits costs some of them memory or polls. */
const rival_tasks = 2_000
const our_rate = 25_000
const rival_rate = 3_000

type LivesScript = 'lives-bullmq' | 'cluster/rival-dbos' | 'lives-restate'

const rival_sides: readonly (readonly [RivalSideName, readonly [ServerRivalName, LivesScript]])[] =
  [
    ['bullmq', ['bullmq', 'lives-bullmq']],
    ['dbos', ['dbos', 'cluster/rival-dbos']],
    ['dbos-http', ['dbos', 'cluster/rival-dbos']],
    ['restate', ['restate', 'lives-restate']],
  ]

interface LivesSlot {
  readonly lives_per_s: number
  readonly p99_ms: number
}

interface LivesSide {
  readonly name: LivesSideName
  measure(): Promise<LivesSlot>
  stop(): Promise<void>
}

interface Run {
  readonly folder: BenchFolder
  readonly is_quick: boolean
  readonly slot_s: number | undefined
  readonly rivals: readonly ServerRivalName[]
}

export async function* serverLivesCells(run: Run): AsyncGenerator<ServerLivesLine> {
  const { folder, is_quick, rivals, slot_s = is_quick ? 0.1 : 4 } = run
  const load: LivesLoad = { callers, warmup_s: is_quick ? 0 : 1, slot_s }
  const scale = is_quick ? 100 : 1
  const sides: LivesSide[] = []
  try {
    const ours = { folder, load, tasks: our_tasks / scale }
    for (const name of ['ours', 'client', 'embedded'] as const) sides.push(ourSide(name, ours))
    const theirs = { folder, load, tasks: rival_tasks / scale }
    for (const [name, [rival, script]] of rival_sides) {
      if (rivals.includes(rival)) sides.push(await startRival(name, rival, script, theirs))
    }
    const slots = new Map(sides.map(({ name }) => [name, [] as LivesSlot[]]))
    for (let rep = 0; rep < (is_quick ? 1 : 5); rep++) {
      for (const side of rep % 2 === 0 ? sides : sides.toReversed()) {
        slots.get(side.name)?.push(await side.measure())
      }
    }
    yield lineOf(slots)
  } finally {
    for (const side of sides) await side.stop()
  }
}

interface SideOptions {
  readonly folder: BenchFolder
  readonly load: LivesLoad
  readonly tasks: number
}

function ourSide(name: OurName, { folder, load, tasks }: SideOptions): LivesSide {
  const http = name === 'ours' ? startHttp(folder) : undefined
  const library =
    name === 'client' ? startChild<ClientLibraryCalls>(folder.script('client-library')) : undefined
  return {
    name,
    async measure() {
      const child = startChild<LivesCalls>(folder.script('cluster/ours'))
      const path = folder.newPath()
      const none = { host: '', port: 0, admin_port: 0, packages: '' }
      const endpoint = await child.call('open', { ...none, path, commit_log: 'files' })
      await child.call('fill', tasks)
      await http?.begin(endpoint, tasks)
      await http?.prepare(load, our_rate)
      const send = (): Promise<Slot> => {
        if (http !== undefined) return http.run(load)
        if (library === undefined) return child.call('lives', load)
        return library.call('lives', { ...load, ...endpoint, tasks })
      }
      const slot = await timed(load, send, () => child.call('close'))
      await child.stop()
      await removeFiles(path)
      return slot
    },
    async stop() {
      await Promise.all([http?.stop(), library?.stop()])
    },
  }
}

async function startRival(
  name: RivalSideName,
  rival: ServerRivalName,
  script: LivesScript,
  { folder, load, tasks }: SideOptions,
): Promise<LivesSide> {
  const server = await startBackend(rivalPackages(rival).backend)
  // Restate would take a frozen service for dead, and run its tasks again.
  const polls = rival !== 'restate'
  const child = startChild<LivesCalls>(folder.script(script), ['--no-warnings'])
  const http = name === 'dbos-http' ? startHttp(folder) : undefined
  const { host, port, admin_port } = server
  const backend = { host, port, admin_port, packages: packagesOf(rival) }
  const endpoint = await child.call('open', { ...backend, path: '', commit_log: 'files' })
  await child.call('fill', tasks)
  await http?.begin(endpoint, tasks)
  const freeze = (): void => {
    if (polls) child.freeze()
  }
  freeze()
  return {
    name,
    async measure() {
      await http?.prepare(load, rival_rate)
      if (polls) child.thaw()
      const send = (): Promise<Slot> => http?.run(load) ?? child.call('lives', load)
      const slot = await timed(load, send, () => child.call('allEnded'))
      freeze()
      return slot
    },
    async stop() {
      child.kill()
      await http?.stop()
      await server.stop()
    },
  }
}

function startHttp(folder: BenchFolder): {
  begin(endpoint: Endpoint, tasks: number): Promise<void>
  /** Lives a second to prepare for: requests are made before the clock starts. */
  prepare(load: LivesLoad, rate: number): Promise<void>
  run(load: LivesLoad): Promise<Slot>
  stop(): Promise<void>
} {
  const child = startChild<HttpLivesCalls>(folder.script('lives-http'))
  return {
    begin: (endpoint, tasks) => child.call('begin', { ...endpoint, tasks }),
    prepare: (load, rate) => child.call('prepare', { lives: callers + rate * spanSeconds(load) }),
    run: (load) => child.call('run', load),
    stop: () => child.stop(),
  }
}

/** The load's clock stops once `pay` has done what the side had put off. */
async function timed(
  { warmup_s }: LivesLoad,
  send: () => Promise<Slot>,
  pay: () => Promise<unknown>,
): Promise<LivesSlot> {
  const start_ms = performance.now()
  const { requests, p99_ms } = await send()
  await pay()
  const seconds = (performance.now() - start_ms) / 1_000 - warmup_s
  return { lives_per_s: requests / 2 / seconds, p99_ms }
}

function lineOf(slots: ReadonlyMap<LivesSideName, readonly LivesSlot[]>): ServerLivesLine {
  const rates = [...slots].map(([name, of_side]) => {
    const of = (key: keyof LivesSlot): Summary => summaryOf(of_side.map((slot) => slot[key]))
    return [name, { lives_per_s: of('lives_per_s'), p99_ms: of('p99_ms') }]
  })
  const ratios = compared.flatMap((pair) => {
    const [ours, over] = [slots.get(pair.ours), slots.get(pair.over)]
    if (ours === undefined || over === undefined) return []
    const within = ours.map(({ lives_per_s }, rep) => lives_per_s / (over[rep]?.lives_per_s ?? 0))
    return [{ ...pair, lives_per_s: summaryOf(within) }]
  })
  return { kind: 'server-lives', cell: server_lives_cell, sides: Object.fromEntries(rates), ratios }
}
