/**
 * `npm run proof:cluster -- [--rounds N] [--seed S] [--faults a,b] [--labs N] [--nodes N]
 * [--lease-ms N] [--without fencing|synchronous_commit] [--history FILE] [--plain] [--times]`:
 * rounds of faults on a whole cluster under load, and a judgement of the history of each. Prints a
 * line for each round and one in the end, also when it is interrupted; exit 1 where an answer was
 * wrong. Takes root, and Debian's packages postgresql-15, patroni, etcd-server, haproxy, iproute2
 * and (for clocks) libfaketime.
 *
 * `--labs` shares the rounds out to so many clusters at once. `--without` takes a safeguard out, and
 * ends with the round that shows it; `--plain` tries one node with its file. `--times` measures the
 * time without service, with the usual lease: hand-overs, and kills of the owner and the primary.
 */
import { readFileSync } from 'node:fs'
import { availableParallelism, loadavg } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { lease_default_ms } from '../../src/cluster/node/settings.ts'
import { openEngine } from '../../src/open.ts'
import { check, isRight, type Verdict, type Wrong, wrongs } from '../support/cluster/checker.ts'
import { type Fault, faults } from '../support/cluster/faults.ts'
import { newHistory } from '../support/cluster/history.ts'
import { type Lab, startLab, whyNoLab } from '../support/cluster/lab.ts'
import { list_id, valuesOf } from '../support/cluster/list-process.ts'
import { type Load, readList, startLoad } from '../support/cluster/load.ts'
import { safeguards } from '../support/cluster/safeguards.ts'
import { fractionsOf } from '../support/fractions.ts'
import { tasksOf } from '../support/tasks-of.ts'

const { values: given } = parseArgs({
  options: {
    rounds: { type: 'string', default: '20' },
    seed: { type: 'string', default: '1' },
    faults: { type: 'string', default: faults.map(({ name }) => name).join() },
    nodes: { type: 'string', default: '2' },
    'lease-ms': { type: 'string' },
    labs: { type: 'string', default: '1' },
    times: { type: 'boolean', default: false },
    callers: { type: 'string', default: '16' },
    without: { type: 'string' },
    history: { type: 'string' },
    plain: { type: 'boolean', default: false },
  },
})

/** Before and after a fault, callers get so many answers. */
const steady_ops = 100
/** For how long a fault lasts that callers do not survive. */
const hold_ms = 3_000
const service_ms_max = 60_000
/** One round in so many has two faults. */
const double_every = 4

/** What `--times` measures, and how often. */
const timed: readonly (readonly [fault: string, rounds: number])[] = [
  ['hand_over', 20],
  ['ask_hand_over', 20],
  ['kill_owner', 10],
  ['kill_primary', 10],
]
const lease_ms = Number(given['lease-ms'] ?? (given.times ? lease_default_ms : 2_000))

/** Each fault as often as any other, in an order of the seed. */
function* dealt(all: readonly Fault[], fraction: () => number): Generator<Fault, never> {
  for (;;) {
    const order = all.map((fault) => ({ fault, at: fraction() }))
    for (const { fault } of order.sort((one, other) => one.at - other.at)) yield fault
  }
}

interface Round {
  readonly name: string
  readonly chosen: readonly Fault[]
}

/** Each fault as often as any other, and now and then two of them. */
function* rounds(wanted: readonly Fault[], fraction: () => number): Generator<Round> {
  if (given.times) {
    const most = Math.max(...timed.map(([, count]) => count))
    for (let n = 1; n <= most; n++) {
      for (const [name, count] of timed)
        if (n <= count) yield { name: `${name}-${n}`, chosen: [faultOf(name)] }
    }
    return
  }
  const deck = dealt(wanted, fraction)
  for (let round = 1; round <= Number(given.rounds); round++) {
    const chosen = [deck.next().value]
    if (round % double_every === 0) chosen.push(deck.next().value)
    yield { name: `r${round}`, chosen }
  }
}

function faultOf(name: string): Fault {
  const fault = faults.find((one) => one.name === name)
  if (fault === undefined) throw new Error(`no fault ${name}: ${faults.map((one) => one.name)}`)
  return fault
}

interface Sums {
  rounds: number
  /** Rounds in which PostgreSQL had no primary for so long that it was healed without one. */
  without_primary: number
  acknowledged: number
  unknown: number
  refused: number
  reads: number
  readonly wrong: Map<string, number>
  /** By fault, the times without service of each round that had it alone. */
  readonly gaps_ms: Map<string, number[]>
  /** From the kill of a primary until another one takes commits. */
  readonly database_ms: number[]
  readonly injected: Map<string, number>
}

async function main(): Promise<number> {
  const why_not = whyNoLab()
  if (why_not !== undefined) throw new Error(why_not)
  const wanted = given.faults.split(',').map(faultOf)
  const fraction = fractionsOf(Number(given.seed))
  const safeguard = given.without === undefined ? undefined : safeguards[given.without]
  if (given.without !== undefined && safeguard === undefined) {
    throw new Error(`no safeguard ${given.without}: ${Object.keys(safeguards)}`)
  }
  const sums: Sums = {
    ...{ rounds: 0, without_primary: 0, acknowledged: 0, unknown: 0, refused: 0, reads: 0 },
    ...{ wrong: new Map(), gaps_ms: new Map(), injected: new Map(), database_ms: [] },
  }
  const all = rounds(wanted, fraction)
  const labs: Promise<Lab>[] = []
  const began_ms = performance.now()

  async function useLab(started: Promise<Lab>, history: string | undefined): Promise<void> {
    const lab = await started
    const kept = { sums, history, lists: new Map<string, readonly string[]>() }
    try {
      for (let next = all.next(); !next.done; next = all.next()) {
        add(sums, await runRound(lab, next.value, fraction, kept))
        sums.rounds++
        if (sums.wrong.size > 0) break
      }
      if (sums.wrong.size === 0) add(sums, await judgeBackup(lab, kept.lists))
    } catch (error) {
      if (given.without !== undefined && isSetBack(lab)) {
        // Nothing is left to be judged: the nodes themselves have found what is lost, and stopped.
        console.log('the database has lost what was acknowledged (log_set_back): no node goes on')
        sums.wrong.set('lost', 1)
        return lab.remove()
      }
      console.error(`${error}; the lines of all are in ${lab.folder}`)
      await lab.stop()
      throw error
    }
    await (sums.wrong.size > 0 && given.without === undefined ? lab.stop() : lab.remove())
  }

  const options = {
    ...{ nodes: given.plain ? 1 : Number(given.nodes), lease_ms, ...safeguard },
    database: given.plain ? (false as const) : { ...safeguard?.database },
  }
  for (const signal of ['SIGINT', 'SIGTERM']) {
    process.once(signal, () => {
      console.log(`interrupted; ${summaryOf(sums, began_ms)}`)
      if (given.times) console.log(tableOf(sums))
      const stopped = labs.map((lab) => lab.then((one) => one.stop()))
      void Promise.allSettled(stopped).finally(() => process.exit(1))
    })
  }
  const uses = Array.from({ length: Number(given.labs) }, (_, n) => {
    const lab = startLab(options)
    labs.push(lab)
    return useLab(lab, given.history && (n === 0 ? given.history : `${given.history}.${n}`))
  })
  const ended = await Promise.allSettled(uses)
  console.log(summaryOf(sums, began_ms))
  if (given.times) console.log(tableOf(sums))
  for (const end of ended) if (end.status === 'rejected') throw end.reason
  return sums.wrong.size === 0 ? 0 : 1
}

function isSetBack({ nodes }: Lab): boolean {
  return nodes.some(({ name, options: { folder } }) =>
    readFileSync(join(folder, `${name}.log`), 'utf8').includes('"event":"log_set_back"'),
  )
}

interface Kept {
  readonly sums: Sums
  /** Where each op of these rounds is written to. */
  readonly history: string | undefined
  /** What was in the lists of this lab. */
  readonly lists: Map<string, readonly string[]>
}

async function runRound(
  lab: Lab,
  { name, chosen }: Round,
  fraction: () => number,
  { sums, history: path, lists }: Kept,
): Promise<Verdict> {
  const history = newHistory(() => performance.now(), path)
  history.note({ round: name, faults: chosen.map((fault) => fault.name) })
  const { clients } = lab
  const load = startLoad({ clients, callers: Number(given.callers), history, fraction, name })
  await served(lab, load, 'before the fault')
  load.longestGap_ms()
  const heals = []
  const done: string[] = []
  let written: Promise<unknown> | undefined
  for (const fault of chosen) {
    const began_ms = performance.now()
    const heal = await fault.inject(lab)
    if (given.times && fault.name === 'kill_primary') {
      const add = (): unknown => sums.database_ms.push(performance.now() - began_ms)
      written = lab.database?.writable().then(add)
    }
    history.note({ fault: fault.name, done: heal !== undefined })
    if (heal === undefined) continue
    heals.push(heal)
    done.push(fault.name)
    sums.injected.set(fault.name, (sums.injected.get(fault.name) ?? 0) + 1)
  }
  let has_primary = true
  const is_survived = chosen.length === 1 && chosen[0]?.is_survived === true
  if (given.plain) await load.more(steady_ops, 500)
  else if (is_survived) has_primary = await served(lab, load, done.join())
  else await load.more(steady_ops, hold_ms + lab.lease_ms)
  await written
  for (const heal of heals.reverse()) await heal()
  history.note({ healed: done })
  // Without a safeguard they may never agree again.
  await lab.ready().catch((error) => {
    if (given.without === undefined) throw error
  })
  await served(lab, load, `${done.join()} was healed`)
  const gap_ms = load.longestGap_ms()
  await load.end()
  if (!has_primary) sums.without_primary++
  else if (done.length === 1) push(sums.gaps_ms, done[0] as string, gap_ms)
  const final = new Map<string, readonly (readonly string[])[]>()
  for (const ref of load.refs) {
    const list = await readSurely(clients[0] as (typeof clients)[0], ref)
    final.set(ref, list.length === 0 ? [] : [list])
    lists.set(ref, list)
  }
  const verdict = check(history.ops, final)
  const { acknowledged, unknown } = verdict
  const text = `${acknowledged} acknowledged, ${unknown} unknown, ${Math.round(gap_ms)} ms`
  const of_database = has_primary ? '' : '; PostgreSQL had no primary until it was healed'
  const what = done.join('+') || 'nothing to inject'
  console.log(`${name} ${what}: ${text} without an answer${of_database}`)
  if (!isRight(verdict)) console.log(wrongIn(verdict))
  return verdict
}

/** On a machine that is too busy the lease may run out for a moment. */
async function readSurely(client: Lab['clients'][number], ref: string): Promise<string[]> {
  const until_ms = performance.now() + service_ms_max
  for (;;) {
    try {
      return await readList(client, ref)
    } catch (error) {
      const is_refused = (error as { code?: unknown }).code === 'overloaded'
      if (!is_refused || performance.now() > until_ms) throw error
    }
  }
}

/** False where PostgreSQL has no primary itself, which no node can mend. */
async function served({ database }: Lab, load: Load, when: string): Promise<boolean> {
  if (await load.more(steady_ops, service_ms_max)) return true
  if (database !== undefined && (await database.primary()) === undefined) return false
  throw new Error(`nobody has been served for ${service_ms_max} ms: ${when}`)
}

/** All that the rounds have left is in a copy of the owner's state that opens alone. */
async function judgeBackup(
  lab: Lab,
  lists: ReadonlyMap<string, readonly string[]>,
): Promise<Verdict> {
  const owner = await lab.ready()
  const path = join(lab.folder, 'backup.lmdb')
  await lab.run(['backup', path, '--db', owner.path])
  const engine = await openEngine(path)
  const tasks = await tasksOf(engine, list_id, { status: 'any', limit: 10_000_000 })
  await engine.close()
  const found = new Map<string, string[][]>()
  for (const task of tasks) push(found, task.ref ?? '', valuesOf(task))
  const wrong = new Map<Wrong, string[]>()
  for (const [ref, list] of lists) {
    const left = found.get(ref) ?? []
    if (left.length > 1) push(wrong, 'doubled', `${ref}: ${left.length} tasks in the backup`)
    const [values = []] = left
    if (values.join() === list.join()) continue
    const what = list.every((value, at) => value === values[at]) ? 'back' : 'lost'
    push(wrong, what, `${ref}: ${list.join(' ')}, and in the backup ${values.join(' ')}`)
  }
  const none = check([], new Map())
  const verdict = { ...none, wrong: { ...none.wrong, ...Object.fromEntries(wrong) } }
  if (!isRight(verdict)) console.log(wrongIn(verdict))
  return verdict
}

function push<Key, Value>(groups: Map<Key, Value[]>, key: Key, value: Value): void {
  const group = groups.get(key)
  if (group === undefined) groups.set(key, [value])
  else group.push(value)
}

function add(sums: Sums, { acknowledged, unknown, refused, reads, wrong }: Verdict): void {
  sums.acknowledged += acknowledged
  sums.unknown += unknown
  sums.refused += refused
  sums.reads += reads
  for (const [name, { length }] of Object.entries(wrong)) {
    if (length > 0) sums.wrong.set(name, (sums.wrong.get(name) ?? 0) + length)
  }
}

function wrongIn({ wrong }: Verdict): string {
  return Object.entries(wrong)
    .flatMap(([name, all]) => all.slice(0, 5).map((sentence) => `  ${name} ${sentence}`))
    .join('\n')
}

function summaryOf(sums: Sums, began_ms: number): string {
  const { acknowledged, unknown, refused, reads } = sums
  const took_s = Math.round((performance.now() - began_ms) / 1_000)
  const injected = [...sums.injected].map(([name, count]) => `${name} ${count}`).join(', ')
  const gaps = [...sums.gaps_ms].map(([name, all]) => `${name} ${halfAndWorst(all).join('/')}`)
  const counts = Object.keys(wrongs).map((name) => `${name} ${sums.wrong.get(name) ?? 0}`)
  return [
    `${sums.rounds} rounds in ${took_s} s, seed ${given.seed}; faults: ${injected}`,
    `acknowledged ${acknowledged}, unknown ${unknown}, refused ${refused}, reads ${reads}`,
    counts.join(', '),
    ...(sums.without_primary > 0 ? [`${sums.without_primary} without a primary until healed`] : []),
    `ms without an answer (p50/worst): ${gaps.join(', ')}`,
  ].join('; ')
}

function halfAndWorst(all: readonly number[]): (number | undefined)[] {
  const sorted = all.toSorted((one, other) => one - other).map(Math.round)
  return [sorted[sorted.length >> 1], sorted.at(-1)]
}

/** Of `--times`. */
function tableOf({ gaps_ms, database_ms }: Sums): string {
  const load = loadavg()[0]?.toFixed(1)
  const rows = timed.map(([name]) => {
    const all = gaps_ms.get(name) ?? []
    return `| ${faultOf(name).says} | ${all.length} | ${halfAndWorst(all).join(' | ')} |`
  })
  const of_database = `| ${database_ms.length} | ${halfAndWorst(database_ms).join(' | ')} |`
  return [
    `ms without service, lease ${lease_ms} ms, ${availableParallelism()} cores, load ${load}`,
    ...['| | times | p50 | worst |', '|---|---|---|---|', ...rows],
    `| of it the database alone, until a new primary takes commits ${of_database}`,
  ].join('\n')
}

// Callers of a round that was broken off go on.
process.exit(await main())
