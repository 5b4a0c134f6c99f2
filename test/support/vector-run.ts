/**
 * Runs one vector on one transport: does its steps in order, compares each answer as text, then the
 * tasks that are left, then every invariant of the store.
 */
import assert from 'node:assert/strict'
import { canonicalText } from '../../src/codec/doc-text.ts'
import { parseJson, stringifyJson } from '../../src/codec/json.ts'
import { renderResults } from '../../src/codec/response-body.ts'
import { isFault, wholeFaults } from '../../src/core/faults.ts'
import type { JsonObject, JsonValue, OpResult, Task } from '../../src/core/model.ts'
import type { Engine } from '../../src/engine/api/engine-api.ts'
import type { Can } from '../../src/engine/api/process-api.ts'
import { serveHttp } from '../../src/http.ts'
import { tasksOf } from './tasks-of.ts'
import { definitionOf, type Vector } from './vector-form.ts'
import type { Link, Transport } from './vector-servers.ts'
import { openWorld, type TaskTarget, type World } from './vector-state.ts'

interface Run {
  readonly world: World
  readonly transport: Transport
  link: Link
  /** `$id1` → the id it stands for. */
  readonly ids: Map<string, string>
}

export async function runVector(vector: Vector, transport: Transport): Promise<void> {
  const world = await openWorld(vector)
  const run: Run = { world, transport, link: await transport.open(world), ids: new Map() }
  try {
    for (const [at, step] of vector.steps.entries()) {
      // A request takes its time at some servers: nothing rings before the step behind it is done.
      if (step.at_once === true) world.hold()
      await doStep(run, step, `steps[${at}]`)
      if (step.at_once === true) continue
      world.release()
      await world.settle()
      const changes = world.takeChanges()
      if (step.changes !== undefined) assert.deepEqual(changes, step.changes, `steps[${at}]`)
    }
    await expectTasks(world.engine(), vector.end, 'end')
    const { breaches } = await world.engine().check()
    const is_damaged = vector.steps.some((step) => 'damage' in step)
    if (!is_damaged) assert.deepEqual(breaches, [], 'check')
  } finally {
    await run.link.close()
    await world.close()
  }
}

async function doStep(run: Run, step: JsonObject, at: string): Promise<void> {
  const { world } = run
  if (Array.isArray(step.post)) await doPost(run, step, at)
  else if ('ops' in step || 'body' in step) await doRequest(run, step, at)
  else if (Array.isArray(step.admin)) await doAdmin(run, step, at)
  else if ('advance_ms' in step) world.advance(step.advance_ms as number)
  else if ('set_clock_ms' in step) world.setClock(step.set_clock_ms as number)
  else if ('expect' in step) await expectTasks(world.engine(), step.expect as JsonObject, at)
  else if ('reopen' in step) await between(run, () => world.reopen((step.closed_ms ?? 0) as number))
  else if ('damage' in step) {
    const task = await world.engine().task(targetOf(run, step.damage))
    await between(run, () => world.damage((task as Task).obj_id))
  } else throw new Error(`${at}: not a step: ${Object.keys(step)}`)
}

async function between(run: Run, work: () => Promise<void>): Promise<void> {
  await run.link.close()
  await work()
  run.link = await run.transport.open(run.world)
}

async function doRequest(run: Run, step: JsonObject, at: string): Promise<void> {
  const { as = run.world.first_user, version = 1, body, ops } = step
  const answer = await run.link.send({
    user: as === null ? null : String(as),
    version: version as 1 | 2,
    body: body === undefined ? undefined : withIds(run, [body].flat().join('')),
    ops: ops === undefined ? undefined : withIds(run, stringifyJson(ops)),
  })
  if (step.refused !== undefined) {
    expectRefused(answer, step.refused as JsonObject, at)
    return
  }
  const { results } = step
  if (results === 'ok') {
    const done = JSON.parse(answer) as { request_proc: string; ops: { proc: string }[] }
    assert.equal(done.request_proc, 'ok', `${at}: ${answer}`)
    for (const { proc } of done.ops) assert.equal(proc, 'ok', `${at}: ${answer}`)
  } else
    expectText(run, answer, `{"request_proc":"ok","ops":${stringifyJson(results ?? null)}}`, at)
}

function expectRefused(answer: string, wanted: JsonObject, at: string): void {
  const { request_proc, ops, description } = JSON.parse(answer) as JsonObject
  assert.deepEqual(ops, [], at)
  const told = wanted.description === undefined ? {} : { description }
  assert.deepEqual({ code: request_proc, ...told } as unknown, { ...wanted }, at)
}

async function doPost(run: Run, step: JsonObject, at: string): Promise<void> {
  const body = withIds(run, String(step.body))
  const answer = await postToAddress(run.world.engine(), { ...step, body })
  if (step.refused !== undefined) expectRefused(answer, step.refused as JsonObject, at)
  else {
    const ops = stringifyJson(step.result ?? null)
    expectText(run, answer, `{"request_proc":"ok","ops":${ops}}`, at)
  }
}

async function doAdmin(run: Run, step: JsonObject, at: string): Promise<void> {
  const [verb, ...args] = step.admin as JsonValue[]
  const known = Object.hasOwn(verbs, String(verb)) ? verbs[String(verb)] : undefined
  if (known === undefined) throw new Error(`${at}: no admin verb ${stringifyJson(verb ?? null)}`)
  let answer: string | undefined
  try {
    answer = await known(run, args)
  } catch (error) {
    if (!isFault(error)) throw error
    const wanted = (step.refused ?? {}) as JsonObject
    const told = wanted.description === undefined ? {} : { description: error.message }
    assert.deepEqual({ code: error.code, ...told } as unknown, { ...wanted }, at)
    return
  }
  assert.equal(step.refused, undefined, `${at}: was not refused`)
  if (step.result !== undefined) expectText(run, answer ?? '', stringifyJson(step.result), at)
}

const verbs: Record<string, (run: Run, args: JsonValue[]) => Promise<string | undefined>> = {
  async put({ world }, [definition, moves]) {
    const text = stringifyJson(definitionOf(definition as JsonValue))
    const given = moves === undefined ? {} : { moves: moves as Record<string, string> }
    const { version, state } = await world.engine().processes.put(text, given)
    return JSON.stringify({ version, state })
  },
  pause: ({ world }, [conv_id]) => done(world.engine().processes.pause(conv_id as number)),
  resume: ({ world }, [conv_id]) => done(world.engine().processes.resume(conv_id as number)),
  remove: ({ world }, [conv_id]) => done(world.engine().processes.remove(conv_id as number)),
  share: ({ world }, [conv_id, user, can]) =>
    done(
      world.engine().processes.share(conv_id as number, user as number, can as unknown as Can[]),
    ),
  unshare: ({ world }, [conv_id, user]) =>
    done(world.engine().processes.unshare(conv_id as number, user as number)),
  webhook: async ({ world }, [conv_id, address]) =>
    void (await world
      .engine()
      .processes.webhook(conv_id as number, { address: address as 'new' | 'off' })),
  cancel: async (run, [task]) =>
    resultText(await run.world.engine().tasks.cancel(targetOf(run, task))),
  retry: async (run, [task, node_id]) =>
    resultText(
      await run.world.engine().tasks.retry(targetOf(run, task), node_id as string | undefined),
    ),
}

async function done(work: Promise<void>): Promise<undefined> {
  await work
}

/** Without the task, which no request for a retry or a cancel gets. */
function resultText({ task: _task, ...result }: OpResult): string {
  return renderResults(1, [result]).slice('{"request_proc":"ok","ops":['.length, -']}'.length)
}

function targetOf(run: Run, task: JsonValue | undefined): TaskTarget {
  return parseJson(withIds(run, stringifyJson(task ?? null))) as TaskTarget
}

/** Puts ids in the place of their names. */
function withIds({ ids }: Run, text: string): string {
  return text.replace(/\$id[0-9]+/g, (name) => {
    const id = ids.get(name)
    if (id === undefined) throw new Error(`${name} was not seen in an answer yet`)
    return id
  })
}

/** Compares after the ids of the answer have got the names that the vector has for them. */
function expectText({ ids }: Run, answer: string, wanted: string, at: string): void {
  const names = wanted.match(/\$id[0-9]+/g) ?? []
  const found = answer.match(/\b[0-9a-f]{24}\b/g) ?? []
  const named = new Map([...ids].map(([name, id]) => [id, name]))
  for (const [n, id] of found.entries()) {
    const name = names[n]
    if (name === undefined || named.has(id) || ids.has(name)) continue
    ids.set(name, id)
    named.set(id, name)
  }
  const text = answer.replace(/\b[0-9a-f]{24}\b/g, (id) => named.get(id) ?? id)
  assert.equal(text, wanted, at)
}

async function expectTasks(engine: Engine, wanted: JsonObject, at: string): Promise<void> {
  const found: Record<string, string[]> = {}
  for (const { conv_id } of await engine.processes.list()) {
    const tasks = await tasksOf(engine, conv_id, { limit: 1e6 })
    tasks.sort((a, b) => (a.obj_id < b.obj_id ? -1 : 1))
    if (tasks.length > 0) found[conv_id] = tasks.map(rowOf)
  }
  const rows = Object.entries(wanted).map(
    ([conv_id, tasks]) => [conv_id, (tasks as JsonObject[]).map(rowWanted)] as const,
  )
  assert.deepEqual(found, Object.fromEntries(rows), at)
}

function rowOf(task: Task): string {
  const ref = task.ref_is_number ? task.ref : JSON.stringify(task.ref)
  const tag = task.status_details === undefined ? '' : ` ${task.status_details.tag}`
  const data = canonicalText(parseJson(task.data_text))
  return `${ref} ${task.status}${tag} in ${task.node_id} ${data}`
}

function rowWanted({ ref = null, status, tag, node_id, data }: JsonObject): string {
  const is_tagged = tag === undefined ? '' : ` ${tag}`
  return `${stringifyJson(ref)} ${status}${is_tagged} in ${node_id} ${canonicalText(data ?? {})}`
}

/** The answer to the `body` of a step, posted to its address or to a guess at it. */
async function postToAddress(engine: Engine, step: JsonObject): Promise<string> {
  const { body, version = 1, form = 'json', hash } = step
  const names = step.post as JsonValue[]
  const server = await serveHttp(engine, { port: 0 })
  try {
    const path = `/${names.join('/')}/${hash ?? (await hashOf(engine, names))}`
    const url = `${server.url}/api/${version}/${form}${path}`
    const answer = await fetch(url, { method: 'POST', body: String(body) })
    const text = await answer.text()
    const code = (JSON.parse(text) as JsonObject).request_proc as keyof typeof wholeFaults
    assert.equal(answer.status, wholeFaults[code]?.http ?? 200)
    return text
  } finally {
    await server.drain()
  }
}

async function hashOf(engine: Engine, [kind, conv_id, node_id]: JsonValue[]): Promise<string> {
  const { address, callbacks } = await engine.processes.webhook(conv_id as number)
  const callback = callbacks.find((one) => one.node_id === node_id)?.address
  return String(kind === 'public' ? address : callback).slice(-40)
}
