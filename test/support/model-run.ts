/**
 * Runs random histories on an engine and on the model, and compares all that can be seen: each
 * result as it comes, the tasks, the processes and the engine's own check at the end. Ids ascend
 * strictly.
 *
 * Between steps both come to rest, so that what is due is done; the lists of one step are sent at
 * once and share commits.
 */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import type { Engine } from '../../src/engine/api.ts'
import { isFault } from '../../src/words/faults.ts'
import type { OpResult, Task } from '../../src/words/model.ts'
import { type Bed, settled } from './model-bed.ts'
import { type Model, newModel, type Target } from './model-engine.ts'
import { definitionOf, type Plan } from './model-graph.ts'
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

/** Small bounds, so that short histories meet them. */
export const model_limits = {
  moves_per_transaction_max: 5,
  moves_without_rest_max: 23,
  task_bytes_max: 600,
  ended_kept_ms: 60_000,
  slice_tasks_max: 3,
}

const no_such_id = '0'.repeat(24)
const a_day_ms = 86_400_000

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
      await settled(bed.clock)
      run.model.now(bed.clock.now_ms())
      run.model.settle()
    }
    await compareAll(run)
    await take(run, { step: 'advance', ms: a_day_ms })
    await settled(bed.clock)
    run.model.now(bed.clock.now_ms())
    run.model.settle()
    await compareAll(run)
  } finally {
    await run.engine.close()
  }
}

async function take(run: Run, step: Step): Promise<void> {
  const { bed, engine, model } = run
  switch (step.step) {
    case 'apply':
      return applyLists(run, step.lists)
    case 'cancel': {
      const target = targetOf(run, step.target)
      const given = { conv_id: step.conv, ...wireOf(run, step.target) }
      return compare(run, given, await engine.tasks.cancel(given), model.cancel(step.conv, target))
    }
    case 'retry': {
      const target = targetOf(run, step.target)
      const given = { conv_id: step.conv, ...wireOf(run, step.target) }
      const result = await engine.tasks.retry(given, step.node)
      return compare(run, given, result, model.retry(step.conv, target, step.node))
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
  const wires = lists.map(({ ops }) => ops.map((op) => wireOpOf(run, op)))
  // The model answers all of them before the engine does, as its tasks change on.
  const wanted = lists.map(({ ops, by_user }) =>
    ops.map((op) => freeze(answerOf(run, model, op, by_user ? only_user : undefined))),
  )
  const results = await Promise.all(
    wires.map((ops, at) => engine.apply(ops, lists[at]?.by_user ? { user: only_user } : {})),
  )
  for (const [at, answers] of wanted.entries()) {
    assert.equal(results[at]?.length, answers.length)
    for (const [i, answer] of answers.entries()) {
      compare(run, wires[at]?.[i] ?? {}, results[at]?.[i] as OpResult, answer)
    }
  }
}

/** An answer with its task as it is now. */
function freeze(answer: Answer | undefined): Answer | undefined {
  return answer?.task === undefined ? answer : { ...answer, task: { ...answer.task } }
}

function answerOf(run: Run, model: Model, op: StepOp, user: string | undefined) {
  if (op.op === 'malformed') return undefined
  const conv = String(op.conv)
  switch (op.op) {
    case 'create':
      return model.create(conv, op.ref ?? undefined, op.data, user)
    case 'modify': {
      const demand = {
        ...(op.is_sync === undefined ? {} : { is_sync: op.is_sync }),
        ...(op.node_id === undefined ? {} : { node_id: op.node_id }),
      }
      return model.modify(conv, targetOf(run, op.target), op.data, demand, user)
    }
    case 'show':
      return model.show(conv, targetOf(run, op.target), user)
  }
}

/** What a target means to the model; `n: -1` is a task that never was. */
function targetOf(run: Run, { ref, nth }: StepTarget): Target {
  if (nth !== undefined) return { n: addressable(run, nth) }
  return { ref: ref as string | number }
}

/**
 * A task is swept at its time or later, as a clock that was set back has it; so a swept one is not
 * asked for. Tasks of the step's own lists have no id yet.
 */
function addressable({ ids, model }: Run, nth: number): number {
  const n = ids.length === 0 ? -1 : nth % ids.length
  return model.tasks[n]?.gone === 'swept' ? -1 : n
}

function wireOf(run: Run, { ref, nth }: StepTarget): Wire {
  return {
    ...(ref === undefined ? {} : { ref }),
    ...(nth === undefined ? {} : { obj_id: run.ids[addressable(run, nth)] ?? no_such_id }),
  }
}

/** As much of an op on the wire as the comparison looks at. */
interface Wire {
  readonly type?: string
  readonly data?: object
  readonly ref?: string | number | null
  readonly obj_id?: string
}

function wireOpOf(run: Run, op: StepOp): Wire {
  if (op.op === 'malformed') return { type: 'erase' }
  const head = { type: op.op, obj: 'task', conv_id: op.conv }
  if (op.op === 'create') {
    return { ...head, data: op.data, ...(op.ref === undefined ? {} : { ref: op.ref }) }
  }
  const target = wireOf(run, op.target)
  if (op.op === 'show') return { ...head, ...target }
  const { data, is_sync, node_id } = op
  return {
    ...head,
    ...target,
    ...{ data },
    ...(is_sync === undefined ? {} : { is_sync }),
    ...(node_id === undefined ? {} : { node_id }),
  }
}

function compare(run: Run, wire: Wire, result: OpResult, answer: Answer | undefined): void {
  const { task: shown, ...rest } = result
  if (answer === undefined) {
    const wanted = { ref: null, obj: 'task', proc: 'error', description: 'bad type', key: 'type' }
    assert.deepEqual(result, wanted)
    return
  }
  const { code, says, task } = answer
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
  })
  if (wire.type !== 'show' || code !== 'ok') assert.equal(shown, undefined)
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

async function compareAll(run: Run): Promise<void> {
  const { engine, model } = run
  for (const conv of convs) {
    if (!model.processes.has(conv)) continue
    const all = { limit: 100_000 }
    const live = await engine.tasks.list(conv, all)
    assert.deepEqual(byId(live.map(plain)), byId(model.liveOf(conv).map((t) => viewOf(run, t))))
    const kept = model.tasks.filter((t) => t.conv === conv && !isLive(t) && t.gone === 'no')
    const ended = [
      ...(await engine.tasks.list(conv, { ...all, status: 'processed' })),
      ...(await engine.tasks.list(conv, { ...all, status: 'canceled' })),
    ]
    const known = new Set(kept.map((task) => run.ids[task.n]))
    const swept = ended.filter((task) => !known.has(task.obj_id))
    assert.deepEqual(
      byId(ended.filter((task) => known.has(task.obj_id)).map(plain)),
      byId(kept.map((task) => viewOf(run, task))),
    )
    for (const { obj_id } of swept) {
      assert.equal(model.tasks[run.ids.indexOf(obj_id)]?.gone, 'swept')
    }
    const { status, tasks } = await engine.processes.show(conv)
    assert.equal(tasks, live.length)
    assert.equal(status === 'paused', model.processes.get(conv)?.is_paused)
  }
  assert.deepEqual((await engine.check()).breaches, [])
}

function byId(tasks: readonly object[]): object[] {
  const idOf = (task: object): string => (task as { obj_id: string }).obj_id
  return [...tasks].sort((one, other) => (idOf(one) < idOf(other) ? -1 : 1))
}
