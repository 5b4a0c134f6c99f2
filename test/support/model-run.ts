/**
 * Runs random histories on an engine and on the model, and compares everything visible: each
 * result, and at the end the tasks, the processes and the engine's own check. Ids ascend strictly.
 *
 * Between two steps both run everything that is due. The lists of ops of one step are sent together
 * and share commits.
 */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { isFault } from '../../src/core/faults.ts'
import type { OpResult, Task } from '../../src/core/model.ts'
import type { Engine } from '../../src/engine/api.ts'
import { type Model, newModel, type Target } from './model-engine.ts'
import { definitionOf, type Plan } from './model-graph.ts'
import { type Bed, settled } from './model-setup.ts'
import {
  convs,
  only_user,
  planned,
  type Step,
  type StepList,
  type StepOp,
  type StepTarget,
  stepArbitrary,
} from './model-steps.ts'
import { type Answer, isLive, type ModelTask } from './model-task.ts'
import { tasksOf } from './tasks-of.ts'

/** Small bounds, so that short histories meet them. */
export const model_limits = {
  moves_per_transaction_max: 4,
  moves_without_rest_max: 10,
  task_bytes_max: 600,
  ended_kept_ms: 60_000,
  slice_tasks_max: 3,
}

const no_such_id = '0'.repeat(24)
const a_day_ms = 86_400_000
const list_max = 1_000_000

/**
 * Runs `runs` histories of up to `steps_max` steps, each on a fresh bed; the first that goes wrong
 * is shrunk and thrown with its seed and path, which CONVEYOR_SEED and CONVEYOR_PATH play again.
 */
export async function checkAgainstModel(
  makeBed: () => Promise<Bed>,
  runs: number,
  steps_max: number,
): Promise<void> {
  const history = fc.record({
    plans: fc.array(planned, { minLength: convs.length, maxLength: convs.length }),
    steps: fc.array(stepArbitrary, { minLength: 1, maxLength: steps_max, size: 'max' }),
  })
  const { CONVEYOR_SEED: seed, CONVEYOR_PATH: path } = process.env
  await fc.assert(
    fc.asyncProperty(history, async ({ plans, steps }) => {
      const bed = await makeBed()
      try {
        await runHistory(bed, plans, steps)
      } finally {
        await bed.remove()
      }
    }),
    {
      numRuns: runs,
      includeErrorInReport: true,
      ...(seed === undefined ? {} : { seed: Number(seed) }),
      ...(path === undefined ? {} : { path }),
    },
  )
}

interface Run {
  readonly bed: Bed
  readonly model: Model
  /** The engine's id of each task of the model. */
  readonly ids: string[]
  engine: Engine
}

async function runHistory(bed: Bed, plans: readonly Plan[], steps: readonly Step[]): Promise<void> {
  const run: Run = { bed, model: newModel(model_limits), ids: [], engine: await bed.open() }
  try {
    await run.engine.users.add({ id: only_user })
    for (const [at, conv] of convs.entries()) {
      await take(run, { step: 'deploy', conv, plan: plans[at] as Plan, moves: [] })
    }
    for (const step of steps) {
      run.model.now(bed.clock.now_ms())
      await take(run, step)
      await settle(run)
      // Ops are compared by their results; what these do shows in the tasks alone.
      if (step.step !== 'apply') await compareTasks(run)
    }
    await take(run, { step: 'advance', ms: a_day_ms })
    await settle(run)
    await compareTasks(run)
    await compareEnded(run)
    assert.deepEqual((await run.engine.check()).breaches, [])
  } finally {
    await run.engine.close()
  }
}

async function settle({ bed, model }: Run): Promise<void> {
  await settled(bed.clock)
  model.now(bed.clock.now_ms())
  model.settle()
}

async function take(run: Run, step: Step): Promise<void> {
  const { bed, engine, model } = run
  switch (step.step) {
    case 'apply':
      return applyLists(run, step.lists)
    case 'cancel': {
      const { conv, target, wire } = placeOf(run, step.conv, step.target)
      const status = model.show(conv, target).task?.status
      const { was, ...result } = await engine.tasks.cancel(wire)
      if (result.proc === 'ok') assert.equal(was?.status, status)
      return compare(run, wire, result, model.cancel(conv, target))
    }
    case 'retry': {
      const { conv, target, wire } = placeOf(run, step.conv, step.target)
      const { was, ...result } = await engine.tasks.retry(wire, step.node)
      if (result.proc === 'ok') assert.equal(was?.status, 'failed')
      return compare(run, wire, result, model.retry(conv, target, step.node))
    }
    case 'pause':
    case 'resume':
      return assert.equal(
        await codeOf(engine.processes[step.step](step.conv)),
        model.setPaused(step.conv, step.step === 'pause'),
      )
    case 'remove':
      return assert.equal(await codeOf(engine.processes.remove(step.conv)), model.remove(step.conv))
    case 'share': {
      const { conv, can } = step
      const done =
        can === undefined
          ? engine.processes.unshare(conv, only_user)
          : engine.processes.share(conv, only_user, can)
      return assert.equal(await codeOf(done), model.share(conv, only_user, can))
    }
    case 'deploy': {
      const { conv, plan } = step
      const moves = Object.fromEntries(step.moves)
      const put = engine.putProcess(definitionOf(conv, plan), { moves })
      const wanted = model.deploy(conv, plan, new Map(Object.entries(moves)))
      return assert.equal(await codeOf(put.then(({ state }) => state)), wanted)
    }
    case 'advance':
      return bed.clock.advance(step.ms)
    case 'back':
      return bed.clock.set(bed.clock.now_ms() - step.ms)
    case 'reopen':
      await engine.close()
      bed.clock.set(bed.clock.now_ms() + step.away_ms)
      run.engine = await bed.open()
  }
}

/** The answer of an administration, or the code it is refused with. */
async function codeOf(done: Promise<unknown>): Promise<string> {
  try {
    return String((await done) ?? 'ok')
  } catch (error) {
    if (isFault(error)) return error.code
    throw error
  }
}

async function applyLists(run: Run, lists: readonly StepList[]): Promise<void> {
  const { engine, model } = run
  // Which tasks the ops mean is settled before the first of them changes anything.
  const calls = lists.map(({ ops }) => ops.map((op) => callOf(run, op)))
  const wanted = lists.map(({ by_user }, at) =>
    (calls[at] ?? []).map((call) => freeze(call.ask(model, by_user ? only_user : undefined))),
  )
  const results = await Promise.all(
    calls.map((ops, at) =>
      engine.apply(
        ops.map(({ wire }) => wire),
        lists[at]?.by_user ? { user: only_user } : {},
      ),
    ),
  )
  for (const [at, answers] of wanted.entries()) {
    assert.equal(results[at]?.length, answers.length)
    for (const [i, answer] of answers.entries()) {
      compare(run, calls[at]?.[i]?.wire ?? {}, results[at]?.[i] as OpResult, answer)
    }
  }
}

/** An answer with its task as it is now. */
function freeze(answer: Answer | undefined): Answer | undefined {
  return answer?.task === undefined ? answer : { ...answer, task: { ...answer.task } }
}

/** An op as the engine gets it, and as the model does; undefined is the answer to no op at all. */
interface Call {
  readonly wire: Wire
  ask(model: Model, user: string | undefined): Answer | undefined
}

function callOf(run: Run, op: StepOp): Call {
  if (op.op === 'malformed') return { wire: { type: 'erase' }, ask: () => undefined }
  const head = { type: op.op, obj: 'task' }
  if (op.op === 'create') {
    const { conv, data } = op
    const is_free = op.ref == null || !run.model.isInDoubt(String(conv), op.ref)
    const ref = is_free ? op.ref : undefined
    return {
      wire: { ...head, conv_id: conv, data, ...(ref === undefined ? {} : { ref }) },
      ask: (model, user) => model.create(String(conv), ref ?? undefined, data, user),
    }
  }
  const { conv, target, wire } = placeOf(run, op.conv, op.target)
  if (op.op === 'show') {
    return { wire: { ...head, ...wire }, ask: (model, user) => model.show(conv, target, user) }
  }
  const { data, is_sync, node_id } = op
  const demand = {
    ...(is_sync === undefined ? {} : { is_sync }),
    ...(node_id === undefined ? {} : { node_id }),
  }
  return {
    wire: { ...head, ...wire, data, ...demand },
    ask: (model, user) => model.modify(conv, target, data, demand, user),
  }
}

/** Which task a step means, for the model and for the engine. */
interface Place {
  readonly conv: string
  readonly target: Target
  readonly wire: Wire & { readonly conv_id: string | number }
}

function placeOf({ ids, model }: Run, conv: string | number, { ref, nth }: StepTarget): Place {
  if (nth === undefined) {
    const target = { ref: ref as string | number }
    if (model.isInDoubt(String(conv), target.ref)) {
      return { conv: String(conv), target: { n: -1 }, wire: { conv_id: conv, obj_id: no_such_id } }
    }
    return { conv: String(conv), target, wire: { conv_id: conv, ...target } }
  }
  const live = model.tasks.filter(isLive)
  const at_home = nth % 2 === 0 ? live[(nth / 2) % live.length] : undefined
  const any = at_home ?? model.tasks[nth % ids.length]
  // A task is swept at its time or later, as a clock that was set back has it: it is not asked for,
  // by its ref as little (`isInDoubt`).
  const task = any?.gone === 'swept' ? undefined : any
  const conv_id = at_home?.conv ?? conv
  const obj_id = ids[task?.n ?? -1] ?? no_such_id
  return {
    conv: String(conv_id),
    target: { n: task?.n ?? -1 },
    wire: { conv_id, obj_id, ...(ref === undefined ? {} : { ref }) },
  }
}

/** As much of an op on the wire as the comparison looks at. */
interface Wire {
  readonly type?: string
  readonly conv_id?: string | number
  readonly data?: object
  readonly ref?: string | number | null
  readonly obj_id?: string
}

function compare(run: Run, wire: Wire, result: OpResult, answer: Answer | undefined): void {
  const { task: shown, ...rest } = result
  if (answer === undefined) {
    const wanted = { ref: null, obj: 'task', proc: 'error', description: 'bad type', key: 'type' }
    assert.deepEqual(result, wanted)
    return
  }
  const { code, says, task, resumed } = answer
  if (code === 'ok' && task !== undefined && task.n === run.ids.length) {
    assert.ok((run.ids.at(-1) ?? '') < (result.obj_id ?? ''), 'ids do not ascend')
    run.ids.push(result.obj_id as string)
  }
  const by_id = wire.type !== 'create' && wire.obj_id !== undefined
  const ref = code === 'ok' && by_id ? task?.ref : (wire.ref ?? task?.ref)
  assert.deepEqual(rest, {
    type: wire.type ?? 'show',
    ...refOf(code === 'ok' && !by_id ? wire.ref : ref),
    obj: 'task',
    ...(task === undefined ? {} : { obj_id: run.ids[task.n] }),
    proc: code,
    ...(says === undefined ? {} : { description: says }),
    ...(resumed === undefined ? {} : { resumed }),
  })
  const shows = code === 'ok' && wire.type !== 'create' && wire.type !== 'modify'
  if (!shows) assert.equal(shown, undefined)
  else assert.deepEqual(plain(shown as Task), viewOf(run, task as ModelTask))
}

function refOf(ref: string | number | null | undefined): object {
  if (ref === undefined || ref === null) return { ref: null }
  return typeof ref === 'number' ? { ref: String(ref), ref_is_number: true } : { ref }
}

function plain({ dataText, ...task }: Task): object {
  return { ...task, data: JSON.parse(dataText) }
}

function viewOf({ ids }: Run, task: ModelTask): object {
  return {
    obj_id: ids[task.n],
    conv_id: task.conv,
    ...refOf(task.ref),
    status: task.status,
    ...(task.details === undefined ? {} : { status_details: task.details }),
    user_id: task.user ?? null,
    create_time_ms: task.created_ms,
    change_time_ms: task.changed_ms,
    node_id: task.node,
    node_prev_id: task.prev,
    data: task.data,
  }
}

async function compareTasks(run: Run): Promise<void> {
  const { engine, model } = run
  for (const conv of convs) {
    const process = model.processes.get(conv)
    if (process === undefined) continue
    const live = await tasksOf(engine, conv, { limit: list_max })
    const wanted = model.liveOf(conv).map((task) => viewOf(run, task))
    assert.deepEqual(byId(live.map(plain)), byId(wanted))
    const { status, tasks } = await engine.processes.show(conv)
    assert.deepEqual([status === 'paused', tasks], [process.is_paused, live.length])
  }
}

/** After so long a time that no step of the clock has delayed a sweep. */
async function compareEnded(run: Run): Promise<void> {
  const { engine, model } = run
  for (const conv of convs) {
    if (!model.processes.has(conv)) continue
    const ended: Task[] = []
    for (const status of ['processed', 'canceled'] as const) {
      ended.push(...(await tasksOf(engine, conv, { limit: list_max, status })))
    }
    const kept = model.tasks.filter(
      (task) => task.conv === conv && !isLive(task) && task.gone === 'no',
    )
    assert.deepEqual(byId(ended.map(plain)), byId(kept.map((task) => viewOf(run, task))))
  }
}

function byId(tasks: readonly object[]): object[] {
  const idOf = (task: object): string => (task as { obj_id: string }).obj_id
  return [...tasks].sort((one, other) => (idOf(one) < idOf(other) ? -1 : 1))
}
