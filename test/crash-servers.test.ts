/**
 * `conveyor serve` is killed while callers load both servers, again and again on one file. Each
 * time every acknowledged request is there, none in part, and `check` finds nothing. A request that
 * was interrupted is there completely or not at all.
 *
 * The judge is tested on files that were made wrong. `CONVEYOR_SLOW=1` runs a hundred rounds and
 * prints what was found.
 */
import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { openEngine } from '../src/open.ts'
import { run } from './support/cli-run.ts'
import { commitLogLeft, crash_forms } from './support/commit-log-crash.ts'
import { cancelAll, judgeLanes } from './support/crash-servers-judge.ts'
import { type Cut, openCallers, sendLane } from './support/crash-servers-load.ts'
import { makeServersFile, type ServersFile } from './support/crash-servers-server.ts'
import {
  countersOf,
  type Lane,
  type LaneKind,
  lane_kinds,
  newLane,
  requestOf,
  servers_processes,
} from './support/crash-servers-work.ts'

const is_slow = process.env.CONVEYOR_SLOW === '1'
const rounds = is_slow ? 100 : 2
/** So many rounds go on with the same lanes before their tasks are cleared away. */
const rounds_kept = 10
/** Three callers at each way in; a stream has several batches under way. */
const lanes_of_kind = 3
const is_whole = { lost: [], half: [], strange: [], breaches: [] }

/** Callers whose server is gone wait for timers that keep no process alive. */
const alive = setInterval(() => {}, 60_000)
after(() => clearInterval(alive))

for (const form of crash_forms) {
  it(`${form.form}: ${rounds} kills under load at both servers`, {
    timeout: 1_200_000,
  }, async (t) => {
    const file = await makeServersFile(form)
    const statistics = newStatistics()
    const began_ms = performance.now()
    let lanes: Lane[] = []
    try {
      for (let round = 0; round < rounds; round++) {
        if (round % rounds_kept === 0) lanes = await newLanes(file.path, round / rounds_kept)
        const before = new Map(lanes.map((lane) => [lane, lane.acked]))
        const { cuts, checked } = await loadAndKill(file, lanes, round % 8 === 3)
        const left = await commitLogLeft(file.path)
        statistics.unmerged += left.unmerged
        if (left.in_checkpoint) statistics.in_checkpoint++
        const engine = await openEngine(file.path, { timers: false })
        const { verdict, there } = await judgeLanes(engine, lanes)
        await engine.close()
        assert.deepEqual(verdict, is_whole, `round ${round}`)
        for (const lane of lanes) statistics.answered(lane, before.get(lane) ?? 0)
        if (checked === 0) statistics.checks++
        for (const cut of cuts) {
          const came_through = (there.get(cut.lane) ?? 0) - cut.lane.acked
          if (cut.outcome === 'not_applied') assert.equal(came_through, 0, cut.cause)
          statistics.cutOff(cut, came_through)
        }
        for (const lane of lanes) lane.sent = lane.acked = there.get(lane) ?? 0
      }
    } finally {
      await file.remove()
    }
    for (const kind of lane_kinds)
      assert.ok(statistics.requests[kind] > 0, `${kind}: none was answered`)
    const seconds = Math.round((performance.now() - began_ms) / 1000)
    t.diagnostic(
      `${rounds} kills in ${seconds} s, 0 lost, 0 half, 0 breaches; ${statistics.text()}`,
    )
  })
}

describe('the judge', () => {
  /** `without` are the ops of the second request that were not applied; all where none was. */
  const all = [0, 1, 2, 3, 4, 5, 6, 7]
  const lost = ['a/2']
  const half = ['a/2: true,false,true,true,true,true,true']
  const fewer = ['a/2: true,true,true,true,false,false,true']
  const rows: [what: string, acked: number, without: number[], found: object][] = [
    ['answered and there', 2, [], {}],
    ['answered and gone', 2, all, { lost }],
    ['answered and there in part', 2, [1], { lost, half }],
    ['not answered and there', 1, [], {}],
    ['not answered and gone', 1, all, {}],
    ['not answered and there in part', 1, [1], { half }],
    ['not answered, and a task fewer', 1, [5], { half: fewer }],
    ['answered, and the refused op counts for nothing', 2, [3], {}],
    ['not answered, and the refused op alone', 1, [0, 1, 2, 4, 5, 6, 7], {}],
    ['never sent', 0, [0, 2, 4, 5, 6, 7], { strange: ['orders/a/2 {"lane":"a","n":2}'] }],
  ]
  for (const [what, acked, without, found] of rows) {
    it(what, async () => {
      const engine = await openEngine(':memory:')
      for (const definition of servers_processes) await engine.putProcess(definition)
      const lane = newLane('a', 'http')
      await engine.apply(countersOf(lane))
      await engine.apply(requestOf(lane, 1).map(({ op }) => op))
      const left = requestOf(lane, 2).filter((_part, at) => !without.includes(at))
      if (left.length > 0) await engine.apply(left.map(({ op }) => op))
      Object.assign(lane, { sent: acked === 0 ? 1 : 2, acked })
      const { verdict } = await judgeLanes(engine, [lane])
      assert.deepEqual(verdict, { ...is_whole, ...found })
      await engine.close()
    })
  }
})

/** Clears away what earlier lanes have left, and makes new ones with their counters. */
async function newLanes(path: string, generation: number): Promise<Lane[]> {
  const engine = await openEngine(path, { limits: { ended_kept_ms: 0 } })
  await cancelAll(engine)
  for (;;) {
    const { breaches, counts } = await engine.check()
    assert.deepEqual(breaches, [])
    if (counts.ended === 0) break
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  const lanes = lane_kinds.flatMap((kind) =>
    Array.from({ length: lanes_of_kind }, (_, at) => newLane(`${kind} ${generation}.${at}`, kind)),
  )
  const counters = lanes.flatMap(countersOf)
  for (const { proc } of await engine.apply(counters)) assert.equal(proc, 'ok')
  await engine.close()
  return lanes
}

interface Round {
  /** How each lane was cut off; none where the server was killed before it listened. */
  readonly cuts: readonly Cut[]
  /** Exit of a `check` that ran under the load, through the admin socket, where one began. */
  readonly checked: number | undefined
}

async function loadAndKill(file: ServersFile, lanes: Lane[], is_early: boolean): Promise<Round> {
  const server = file.start()
  const kill = (after_ms: number) => setTimeout(server.kill, after_ms)
  let timer = is_early ? kill(700 * Math.random()) : undefined
  let cuts: Cut[] = []
  let checking: ReturnType<typeof run> | undefined
  try {
    const target = await server.listening
    if (target !== undefined) {
      const callers = await openCallers(target)
      const begun = new Set<LaneKind>()
      const onAck = (kind: LaneKind): void => {
        if (begun.add(kind).size < lane_kinds.length) return
        checking ??= run(['check', '--db', file.path])
        timer ??= kill(600 * Math.random())
      }
      const sending = lanes.map((lane) => sendLane(lane, callers, () => onAck(lane.kind)))
      cuts = await Promise.all(sending).finally(() => callers.close())
    }
  } finally {
    server.kill()
    clearTimeout(timer)
  }
  const { signal, said } = await server.ended
  assert.equal(signal, 'SIGKILL', `the server ended by itself: ${said}`)
  assert.doesNotMatch(said, /"level":"(?:error|fatal)"/)
  const checked = await checking
  // Cut off by the kill it has found nothing, and says so.
  if (checked?.exit !== 3) assert.equal(checked?.exit ?? 0, 0, checked?.out)
  return { cuts, checked: checked?.exit }
}

function newStatistics() {
  const zeros = () => Object.fromEntries(lane_kinds.map((kind) => [kind, 0]))
  const requests = zeros() as Record<LaneKind, number>
  const ops = zeros() as Record<LaneKind, number>
  const causes = new Map<string, number>()
  let [unknown, came_through] = [0, 0]
  return {
    requests,
    checks: 0,
    unmerged: 0,
    in_checkpoint: 0,
    answered(lane: Lane, before: number): void {
      requests[lane.kind] += lane.acked - before
      for (let n = before + 1; n <= lane.acked; n++) ops[lane.kind] += requestOf(lane, n).length
    },
    cutOff({ lane, cause }: Cut, of_these: number): void {
      causes.set(cause, (causes.get(cause) ?? 0) + 1)
      unknown += lane.sent - lane.acked
      came_through += of_these
    },
    text(): string {
      const servers = lane_kinds.map((kind) => `${kind} ${requests[kind]} (${ops[kind]} ops)`)
      const broke = [...causes].map(([cause, count]) => `${cause} ${count}`)
      return (
        `answered: ${servers.join(', ')}; broken off: ${unknown} requests, ${came_through} of them ` +
        `there all the same; callers saw ${broke.join(', ')}; ` +
        `${this.checks} checks meanwhile; ${this.unmerged} groups left to the commit log, ` +
        `${this.in_checkpoint} kills in a merge`
      )
    },
  }
}
