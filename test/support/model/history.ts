/**
 * A random history of ops, administration, answers of jobs, clock steps, reopenings and breaks of
 * the disk, on an engine and on the model, which must agree at each step: results, tasks with their
 * data and history, counts, the order of all changes.
 */
import assert from 'node:assert/strict'
import type { JobKind } from '../../../src/core/counters.ts'
import { isFault } from '../../../src/core/faults.ts'
import type { OpResult } from '../../../src/core/model.ts'
import type { JobOutcome } from '../../../src/process/logic.ts'
import {
  compareFeed,
  compareProcesses,
  compareResult,
  compareTasks,
  frozen,
  type Wire,
} from './compare.ts'
import { type Disk, type Held, id_middle, type ModelHarness, modelHarness } from './harness.ts'
import { applyOutcome, codeAnswer, type Outcome } from './jobs.ts'
import * as ops from './ops.ts'
import { type Data, definitionText, type Json, type Plan } from './plan.ts'
import {
  changedPlan,
  closed,
  convs,
  handled_title,
  node_ids,
  type Profile,
  randomData,
  randomPlan,
  refs,
} from './plan-random.ts'
import { newRandom, type Random } from './random.ts'
import { newTurns, type Turns } from './turns.ts'
import { type Job, type ModelLimits, newWorld, type World } from './world.ts'

export const only_user = '13000'
const probe = 'probe'
const a_day_ms = 86_400_000

export type RunCode = (order: Extract<Held['order'], { job: 'code' }>) => Promise<JobOutcome>

interface Run {
  readonly random: Random
  readonly profile: Profile
  readonly harness: ModelHarness
  readonly world: World
  readonly turns: Turns
  /** What was done, for whoever reads of a failure. */
  readonly told: (readonly [what: string, more?: unknown])[]
  /** Runs code in the sandbox; undefined where its answer is made here. */
  readonly runCode: RunCode | undefined
  readonly jobs: WeakMap<Held, Job>
  readonly keys: Set<string>
  /** Outcomes for paused processes. */
  waiting: { readonly job: Job; readonly order: Data; readonly outcome: Outcome }[]
  /** What a broken disk has of the first commit of what the engine does by itself. */
  breaks: 'lost' | 'kept' | undefined
  faults: number
  /** Its tasks go on without an end, so nothing more can be compared. */
  is_endless: boolean
}

const tight: ModelLimits = {
  ...{ moves_per_transaction_max: 4, moves_without_rest_max: 10, task_bytes_max: 600 },
  ...{ ended_kept_ms: 60_000, slice_tasks_max: 3 },
}
const wide: ModelLimits = { ...tight, moves_per_transaction_max: 1_000, moves_without_rest_max: 30 }

/** Bounds how far tasks that make tasks may get. */
const tasks_max = 300
/**
 * What takes so many transactions, in the engine or in the model, never ends: a task may call its own
 * process on and on. Others take a tenth of that. Where one of the two goes on and the other does not,
 * they differ.
 */
const transactions_max = 800
const settled_turns_max = 20_000

/** Runs the history of a seed on a disk; throws where engine and model differ. */
export async function runHistory(
  seed: number,
  disk: Disk,
  runCode?: RunCode,
): Promise<{ readonly met: ReadonlyMap<string, number>; readonly faults: number }> {
  const random = newRandom(seed)
  const profile = { computes: random.oneIn(2) }
  const base = profile.computes ? wide : tight
  const limits = { ...base, slice_tasks_max: random.pick([1, 3, 100]) }
  const world = newWorld(limits, handled_title)
  const harness = await modelHarness(disk, limits, handled_title)
  const run: Run = {
    ...{ random, profile, harness, world, turns: newTurns(world), told: [], runCode },
    ...{ jobs: new WeakMap(), keys: new Set(), waiting: [], breaks: undefined, faults: 0 },
    is_endless: false,
  }
  world.id_middle = id_middle
  world.now_ms = harness.clock.now_ms()
  try {
    await harness.engine.users.add({ id: only_user })
    for (const conv of convs) await deploy(run, conv, randomPlan(random, conv, profile), new Map())
    // What a user may do is decided where one process lets them and another one not.
    if (random.oneIn(2)) for (const conv of convs) await share(run, conv)
    const steps = 8 + random.below(25)
    for (let n = 0; n < steps && world.tasks.size < tasks_max && !run.is_endless; n++) {
      await step(run)
      if (random.oneIn(12) && !run.is_endless) await compareTasks(harness.engine, world)
    }
    if (!run.is_endless) await compareAll(run)
    return { met: world.met, faults: run.faults }
  } catch (error) {
    const what = error instanceof Error ? (error.stack ?? error.message) : String(error)
    const told = run.told.map(([did, more]) =>
      more === undefined ? did : `${did} ${JSON.stringify(more)}`,
    )
    throw new Error(`${what}\nafter\n${told.join('\n')}`)
  } finally {
    await harness.close().catch(() => {})
    await disk.remove()
  }
}

function emit(run: Run, what: string, more?: unknown): void {
  run.world.meet(`step ${what}`)
  run.told.push([what, more])
}

/** Lets both do what is due at this time. */
async function settle(run: Run): Promise<void> {
  const { harness, world, turns } = run
  let is_settled = await harness.settled(transactions_max)
  world.now_ms = harness.clock.now_ms()
  turns.publish()
  if (harness.isBroken()) is_settled = await reopenBroken(run)
  run.breaks = undefined
  harness.breakAtNextCommit(undefined)
  // A commit of the engine may have many turns in it.
  const turns_max = is_settled ? settled_turns_max : transactions_max / 2
  let made = 0
  while (made < turns_max && turns.step()) made++
  assert.equal(made < turns_max, is_settled, 'one goes on and the other does not')
  if (is_settled) return noteJobs(run)
  world.meet('endless')
  run.is_endless = true
}

/** What the broken disk has of the first commit after the break was asked for. */
async function reopenBroken(run: Run): Promise<boolean> {
  const { harness, world, turns } = run
  run.faults++
  if (run.breaks === 'kept') {
    const { writes } = world
    while (world.writes === writes && turns.step());
  }
  run.breaks = undefined
  await harness.reopenBroken()
  turns.reopen()
  run.waiting = []
  return harness.settled(transactions_max)
}

async function step(run: Run): Promise<void> {
  const { random, harness, world } = run
  world.now_ms = harness.clock.now_ms()
  const conv = (): string => random.pick([...convs, '22', '22'])
  await random.weighted<() => Promise<void>>([
    [30, () => apply(run)],
    [4, () => act(run, 'cancel', conv())],
    [6, () => act(run, 'retry', conv())],
    [4, () => act(run, 'move', conv())],
    [6, () => pause(run, random.oneIn(2) ? conv() : calling(run), random.oneIn(3))],
    [1, () => remove(run, conv())],
    [4, () => share(run, conv())],
    [6, () => deployLater(run, conv())],
    [run.harness.held.length > 0 ? 10 : 0, () => answer(run)],
    [14, () => advance(run)],
    [2, () => setBack(run)],
    [4, () => reopen(run)],
  ])()
  await settle(run)
}

async function apply(run: Run): Promise<void> {
  const { random, harness, world } = run
  const lists = random.list(1, 2, () => ({
    user: random.oneIn(4) ? only_user : undefined,
    calls: random.list(1, 5, () => randomCall(run)),
  }))
  emit(
    run,
    'apply',
    lists.map(({ user, calls }) => [user, ...calls.map(({ wire }) => wire)]),
  )
  const how = random.oneIn(40) ? random.pick(['lost', 'kept'] as const) : undefined
  if (how !== undefined) breakNext(run, how)
  const results = await Promise.allSettled(
    lists.map(({ user, calls }) =>
      harness.engine.apply(
        calls.map(({ wire }) => wire),
        user === undefined ? {} : { user },
      ),
    ),
  )
  const is_broken = harness.isBroken()
  if (is_broken && how === 'lost') return
  harness.breakAtNextCommit(undefined)
  for (const [at, { user, calls }] of lists.entries()) {
    world.beginRequest()
    const result = results[at] as PromiseSettledResult<OpResult[]>
    for (const [n, { wire, ask }] of calls.entries()) {
      const wanted = ask(user)
      world.meet(`op ${wire.type} ${wanted?.code ?? 'malformed'}`)
      if (result.status === 'fulfilled') compareResult(wire, result.value[n] as OpResult, wanted)
      else if (!is_broken) throw result.reason
    }
  }
}

function breakNext({ harness, world, told }: Run, how: 'lost' | 'kept'): void {
  told.push([`break the disk, ${how}`])
  world.meet(`break ${how}`)
  harness.breakAtNextCommit(how)
}

interface Call {
  readonly wire: Wire
  ask(user: string | undefined): ops.Answer | undefined
}

const no_such_id = '0'.repeat(24)

function randomCall(run: Run): Call {
  const { random, world } = run
  const { oneIn, pick } = random
  if (oneIn(40)) return { wire: { type: 'erase' }, ask: () => undefined }
  const conv_id = oneIn(30) ? 'nowhere' : pick<string | number>([...convs, 22, '22'])
  const conv = String(conv_id)
  const type = random.weighted([
    [10, 'create'],
    [14, 'modify'],
    [3, 'show'],
  ] as const)
  const head = { type, obj: 'task', conv_id }
  const data = oneIn(6) ? {} : randomData(random)
  if (type === 'create') {
    const ref = oneIn(3) ? undefined : pick(refs)
    const wire = { ...head, data, ...(ref === undefined ? {} : { ref }) }
    return { wire, ask: (user) => ops.create(world, conv, ref, data, user) }
  }
  const { at, target } = randomTarget(run, conv)
  const placed = { ...head, conv_id: at === conv ? conv_id : at, ...target }
  if (type === 'show') {
    return { wire: placed, ask: (user) => frozenAnswer(ops.show(world, at, target, user)) }
  }
  const is_sync = oneIn(4) ? oneIn(2) : undefined
  const node_id = oneIn(6) ? pick(node_ids) : undefined
  const demand = {
    ...(is_sync === undefined ? {} : { is_sync }),
    ...(node_id === undefined ? {} : { node_id }),
  }
  const wire = { ...placed, data, ...demand }
  return { wire, ask: (user) => ops.modify(world, at, target, data, demand, user) }
}

const frozenAnswer = (answer: ops.Answer): ops.Answer =>
  answer.task === undefined ? answer : { ...answer, task: frozen(answer.task) }

/** By ref, or a task that lives, in its process, or any that is kept. */
function randomTarget({ random, world }: Run, conv: string): { at: string; target: ops.Target } {
  const { oneIn, pick } = random
  if (oneIn(2)) return { at: conv, target: { ref: pick(refs) } }
  if (oneIn(30)) return { at: conv, target: { obj_id: no_such_id } }
  const live = oneIn(4) ? [...world.tasks.values()] : convs.flatMap(world.live)
  if (live.length === 0) return { at: conv, target: { obj_id: no_such_id } }
  const task = pick(live)
  return { at: oneIn(20) ? conv : task.conv, target: { obj_id: task.obj_id } }
}

async function act(run: Run, what: 'cancel' | 'retry' | 'move', given: string): Promise<void> {
  const { random, harness, world } = run
  // Few tasks have failed, and few rest between two transactions.
  const wanted_status = { cancel: 'processing', retry: 'failed', move: undefined }[what]
  const rare = [...world.tasks.values()].filter(({ status }) => status === wanted_status)
  const one = rare.length > 0 && !random.oneIn(4) ? random.pick(rare) : undefined
  const { at, target } =
    one === undefined ? randomTarget(run, given) : { at: one.conv, target: { obj_id: one.obj_id } }
  const node = what === 'move' || random.oneIn(3) ? random.pick([...node_ids, 'gone']) : undefined
  const wire = { conv_id: at, ...target }
  emit(run, what, [wire, node])
  world.beginRequest()
  const status = ops.show(world, at, target).task?.status
  const { tasks } = harness.engine
  const { was, ...result } =
    what === 'cancel'
      ? await tasks.cancel(wire)
      : what === 'retry'
        ? await tasks.retry(wire, node)
        : await tasks.move(wire, node as string)
  if (result.proc === 'ok') assert.equal(was?.status, status)
  const wanted =
    what === 'cancel'
      ? ops.cancel(world, at, target)
      : what === 'retry'
        ? ops.retry(world, at, target, node)
        : ops.move(world, at, target, node as string)
  world.meet(`${what} ${wanted.code}`)
  compareResult(wire, result as OpResult, wanted)
}

/** The process of a task that waits for a reply, which may come while the process is paused. */
function calling({ random, world }: Run): string {
  const callers = [...world.tasks.values()].filter(({ wait }) => wait === 'reply')
  return callers.length > 0 ? random.pick(callers).conv : random.pick(convs)
}

async function pause(run: Run, conv: string, is_paused: boolean): Promise<void> {
  const { harness, world } = run
  emit(run, is_paused ? 'pause' : 'resume', conv)
  const done = harness.engine.processes[is_paused ? 'pause' : 'resume'](conv)
  const wanted = ops.setPaused(world, conv, is_paused)
  assert.equal(await codeOf(done), wanted)
  if (wanted === 'ok' && !is_paused) onProcessChanged(run, conv)
}

/** Outcomes that waited for a paused process are applied with the first step of what is due. */
function onProcessChanged(run: Run, conv: string): void {
  const { turns, waiting } = run
  turns.publish()
  turns.onProcessChanged(conv)
  run.waiting = []
  for (const one of waiting) finish(run, one)
}

function finish(run: Run, one: Run['waiting'][number]): void {
  const { world } = run
  world.beginRequest()
  if (applyOutcome(world, one.job, one.order, one.outcome) === 'paused') run.waiting.push(one)
}

async function remove(run: Run, conv: string): Promise<void> {
  emit(run, 'remove', conv)
  const done = run.harness.engine.processes.remove(conv)
  assert.equal(await codeOf(done), ops.remove(run.world, conv))
}

async function share(run: Run, conv: string): Promise<void> {
  const { random, harness, world } = run
  const rights = ['create', 'modify', 'show'] as const
  const can = random.oneIn(4) ? undefined : rights.filter(() => !random.oneIn(3))
  emit(run, 'share', [conv, can])
  const { processes } = harness.engine
  const done =
    can === undefined ? processes.unshare(conv, only_user) : processes.share(conv, only_user, can)
  assert.equal(await codeOf(done), ops.share(world, conv, only_user, can))
}

async function deployLater(run: Run, conv: string): Promise<void> {
  const { random, profile, world } = run
  const { oneIn, pick } = random
  const old = world.processes.get(conv)
  const made =
    old === undefined || oneIn(8)
      ? randomPlan(random, conv, profile)
      : oneIn(10)
        ? old.plan
        : changedPlan(random, conv, old.plan, profile)
  const to = pick(['s', 'n1', 'e1'])
  const moves = oneIn(3)
    ? random.list(0, 4, () => [pick(node_ids), pick(node_ids)] as const)
    : node_ids.map((from) => [from, to] as const)
  await deploy(run, conv, old === undefined ? made : keepingJobs(world, conv, made), new Map(moves))
}

/** A node in which tasks wait for a job keeps its logics, or goes. */
function keepingJobs(world: World, conv: string, plan: Plan): Plan {
  const nodes = new Map(plan.nodes)
  for (const { node, job } of world.live(conv)) {
    const old = world.planOf(conv)?.nodes.get(node)
    if (job !== undefined && old !== undefined && nodes.has(node)) nodes.set(node, old)
  }
  return { ...plan, nodes: closed(nodes) }
}

async function deploy(
  run: Run,
  conv: string,
  plan: Plan,
  moves: ReadonlyMap<string, string>,
): Promise<void> {
  const { harness, world } = run
  const text = definitionText(conv, plan)
  emit(run, 'deploy', [text, Object.fromEntries(moves)])
  const put = harness.engine.processes.put(text, { moves: Object.fromEntries(moves) })
  const wanted = ops.deploy(world, conv, plan, moves)
  world.meet(`deploy ${wanted}`)
  assert.equal(await codeOf(put.then(({ state }) => state)), wanted)
  if (['created', 'updated', 'unchanged'].includes(wanted)) onProcessChanged(run, conv)
  await settle(run)
}

async function codeOf(done: Promise<unknown>): Promise<string> {
  try {
    return String((await done) ?? 'ok')
  } catch (error) {
    if (isFault(error)) return error.code
    throw error
  }
}

/** The data that a job was given, without what code is told of its task. */
function orderData({ order }: Held): Data {
  const { __root: _root, ...data } = JSON.parse(order.doc.text) as Record<string, Json>
  return data
}

/** Each job is begun, not too early, with the data and the key of its visit. */
function noteJobs(run: Run): void {
  const { harness, world, jobs } = run
  const begun = new Set<string>()
  for (const one of harness.held) {
    const { obj_id } = one.job.task
    begun.add(obj_id)
    if (jobs.has(one)) continue
    const job = world.tasks.get(obj_id)?.job
    // The job of an earlier visit may be under way still; its outcome is not taken.
    if (one.job.key !== job?.key) continue
    // A first attempt waits for nothing, also where the clock was set back before a reopening.
    const earliest_ms = job.attempts === 0 ? 0 : job.begins_ms - 400 * job.attempts
    assert.ok(world.now_ms >= earliest_ms, 'a job has begun too early')
    const given = orderData(one)
    assert.ok(
      job.seen.some((data) => world.sameData(data, given)),
      'a job has other data',
    )
    jobs.set(one, job)
  }
  for (const task of world.tasks.values()) {
    const { job, conv, node } = task
    const process = world.processes.get(conv)
    if (job === undefined || process === undefined || process.is_paused) continue
    const waits = run.waiting.some((one) => one.job.task === task)
    const may_begin = process.plan.nodes.has(node) && world.now_ms >= job.begins_ms && !waits
    if (may_begin) assert.ok(begun.has(task.obj_id), `a job of ${task.obj_id} is not begun`)
  }
}

async function answer(run: Run): Promise<void> {
  const { random, harness, world, jobs } = run
  const held = random.pick(harness.held)
  const outcome = await randomOutcome(run, held)
  const job = jobs.get(held)
  emit(run, 'answer', [
    held.job.task.obj_id,
    held.order.job,
    outcome,
    job === undefined ? 'late' : '',
  ])
  held.answer(outcome as never)
  if (job !== undefined) finish(run, { job, order: orderData(held), outcome })
  world.meet(`answer ${outcome.outcome}`)
}

async function randomOutcome({ random, runCode }: Run, held: Held): Promise<Outcome> {
  const { order } = held
  const { pick, oneIn } = random
  if (oneIn(3)) {
    const [tag, error_type] = pick(failures[order.job])
    const description = pick(['it failed', 'timeout'])
    const may_pass = order.job !== 'code' && oneIn(2)
    return { outcome: 'failed', error_type, tag, description, may_pass }
  }
  if (order.job === 'code') {
    const text = codeAnswer(order.src, orderData(held))
    const ran = await runCode?.(order)
    if (ran !== undefined) assertCode(ran, text)
    return { outcome: 'done', text }
  }
  if (order.job === 'handler') return { outcome: 'done', text: JSON.stringify(randomData(random)) }
  const bodies = [
    '{"x":1,"c":"called"}',
    '[1,2]',
    '',
    'no json',
    JSON.stringify(randomData(random)),
  ]
  return { outcome: 'done', text: pick(bodies), status: pick([200, 200, 200, 201, 202, 404, 500]) }
}

function assertCode(ran: JobOutcome, text: string): void {
  const { __root: _root, ...data } = JSON.parse(ran.outcome === 'done' ? ran.text : '{}') as Data
  assert.deepEqual(data, JSON.parse(text))
}

const failures: Readonly<Record<JobKind, readonly (readonly [string, 'hardware' | 'software'])[]>> =
  {
    code: [
      ['code_timeout', 'software'],
      ['code_executing_error', 'software'],
    ],
    call: [
      ['api_bad_answer', 'software'],
      ['api_expire_query', 'hardware'],
      ['api_fatal_error', 'hardware'],
    ],
    db: [['db_call_timeout', 'hardware']],
    handler: [
      ['handler_error', 'software'],
      ['handler_timeout', 'hardware'],
    ],
  }

async function advance(run: Run): Promise<void> {
  const { random, harness, world } = run
  const live = [...world.tasks.values()].filter(({ due_ms }) => due_ms > world.now_ms)
  const to_next = live.length > 0 ? random.pick(live).due_ms - world.now_ms : 0
  const ms = random.weighted([
    [4, random.pick([0, 1, 999, 1_000, 4_999, 5_000, 60_000, 200_000])],
    [2, to_next],
    [1, Math.max(0, to_next - 1)],
    [0.2, a_day_ms],
  ])
  emit(run, 'advance', ms)
  if (random.oneIn(20)) {
    run.breaks = random.pick(['lost', 'kept'] as const)
    breakNext(run, run.breaks)
  }
  harness.clock.advance(ms)
}

async function setBack({ random, harness, world, told }: Run): Promise<void> {
  const ms = random.pick([1, 3_000, 3_000, a_day_ms])
  told.push(['set back', ms])
  world.meet('step set back')
  harness.clock.set(harness.clock.now_ms() - ms)
}

async function reopen(run: Run): Promise<void> {
  const { random, harness, world, turns } = run
  const away_ms = random.pick([0, 1, 1_000, 60_000, -3_000])
  emit(run, 'reopen', away_ms)
  await harness.close()
  harness.clock.set(harness.clock.now_ms() + away_ms)
  await harness.open()
  world.now_ms = harness.clock.now_ms()
  turns.publish()
  turns.reopen()
  run.waiting = []
}

/** Everything visible, after so long a time that ended tasks are gone and timers have fired. */
async function compareAll(run: Run): Promise<void> {
  const { harness, world } = run
  world.now_ms = harness.clock.now_ms()
  harness.clock.advance(a_day_ms)
  await settle(run)
  if (run.is_endless) return
  const sums = [...world.sums.keys()].map((key) => key.split(' '))
  const set = sums
    .filter(([conv = '']) => world.processes.has(conv))
    .map(([conv = '', node = '', name = ''], at) => ({
      ...{ key: [`s${at}`], type: undefined },
      value: [{ is: 'sum' as const, node, name, conv }],
    }))
  const node = { timers: [], counts: [], save: true, title: '' }
  const nodes = [
    {
      ...node,
      id: 's',
      kind: 'start' as const,
      steps: [
        { does: 'set_param' as const, set, err: 'e' },
        { does: 'go' as const, to: 'e' },
      ],
    },
    { ...node, id: 'e', kind: 'end' as const, steps: [] },
  ]
  const plan: Plan = {
    kind: 'process',
    params: [],
    nodes: new Map(nodes.map((one) => [one.id, one])),
  }
  await deploy(run, probe, plan, new Map())
  world.now_ms = harness.clock.now_ms()
  world.beginRequest()
  const wanted = ops.create(world, probe, undefined, {})
  const op = { type: 'create', obj: 'task', conv_id: probe, data: {} }
  const [result] = await harness.engine.apply([op])
  compareResult(op, result as OpResult, wanted)
  turns(run)
  await compareTasks(harness.engine, world)
  await compareProcesses(harness.engine, world)
  await compareFeed(harness.engine, world, wanted.task?.obj_id ?? '')
  assert.deepEqual((await harness.engine.check()).breaches, [])
}

const turns = ({ turns }: Run): void => turns.publish()
