/**
 * What the outcome of a job does to its task in the model: of code, of a call, of a handler.
 */
import { advance, migrate, saveAndDrain } from './advance.ts'
import { member } from './expressions.ts'
import type { Effect } from './logics.ts'
import { codes, type Data, type Json, type Step } from './plan.ts'
import { isObject, sorted } from './values.ts'
import type { Job, World } from './world.ts'

/** What an executor answers; the same is given to the engine. */
export type Outcome =
  | { readonly outcome: 'done'; readonly text: string; readonly status?: number }
  | {
      readonly outcome: 'failed'
      readonly error_type: 'hardware' | 'software'
      readonly tag: string
      readonly description: string
      readonly may_pass: boolean
    }

export const backoff_ms = 400
export const handler_attempts_max = 2

/**
 * Applies an outcome; `order` is the data that the job was given. The caller begins the request. One
 * after which the job is tried again is taken also while its process is paused.
 */
export function applyOutcome(
  world: World,
  job: Job,
  order: Data,
  outcome: Outcome,
): 'paused' | undefined {
  const { task } = job
  if (task.job !== job || task.is_gone) return undefined
  const process = world.processes.get(task.conv)
  if (process === undefined) return undefined
  const found = process.plan.nodes.get(task.node)?.steps[task.at]
  const step = found?.does === job.type ? found : undefined
  if (
    outcome.outcome === 'failed' &&
    outcome.may_pass &&
    job.attempts + 1 < attemptsOf(job, step)
  ) {
    job.begins_ms = world.now_ms + backoff_ms * 2 ** job.attempts
    job.attempts++
    world.save(task)
    return undefined
  }
  if (process.is_paused) return 'paused'
  world.beginOp()
  if (!migrate(world, task)) {
    world.note(task, why(job))
    const effect = step && finish(world, task.data, step, order, outcome)
    advance(world, task, effect === undefined ? 0 : task.at, effect)
  }
  saveAndDrain(world, task)
  return undefined
}

const why = ({ type }: Job): 'code' | 'call' | 'handler' =>
  type === 'api_code' ? 'code' : type === 'api' ? 'call' : 'handler'

function attemptsOf({ type }: Job, step: Step | undefined): number {
  if (type === 'api_code') return 1
  return step?.does === 'api' ? step.attempts_max : handler_attempts_max
}

function finish(world: World, now: Data, step: Step, order: Data, outcome: Outcome): Effect {
  const err = 'err' in step ? step.err : undefined
  const kind = step.does === 'api_code' ? 'code' : step.does === 'api' ? 'api' : 'handler'
  const fail = (tag: string, says: string, is_hardware = false): Effect => ({
    ...{ does: 'fail', kind, tag, says, err, is_hardware },
  })
  if (outcome.outcome === 'failed') {
    return fail(outcome.tag, outcome.description, outcome.error_type === 'hardware')
  }
  const made = step.does === 'api_code' ? afterCode(now, order, outcome.text) : undefined
  const answer = step.does === 'api' ? afterCall(now, step.response, outcome) : undefined
  if (typeof answer === 'string') return fail(...(answer.split('\n') as [string, string]))
  const data = made ?? answer ?? { ...now, ...(JSON.parse(outcome.text) as Data) }
  const over = world.overSize(data)
  if (over === undefined) return { does: 'set', data, err }
  const says = `${over.says}, Try to change your data or try to split your task`
  if (kind === 'code') return fail('code_return_format_error', says)
  return fail(kind === 'api' ? 'api_task_size_overflow_limit' : 'handler_task_size_overflow', says)
}

/** What the code of a plan answers for the data that it is given. */
export function codeAnswer(src: string, given: Data): string {
  const data = structuredClone(given) as Record<string, Json>
  codes.find((code) => code.src === src)?.run(data)
  return JSON.stringify(data)
}

/** Only what the code has changed or removed is applied to the data as it is now. */
function afterCode(now: Data, order: Data, text: string): Data {
  const after = JSON.parse(text) as Data
  const data: Record<string, Json> = { ...now }
  for (const key of Object.keys(order)) if (!Object.hasOwn(after, key)) delete data[key]
  for (const [key, value] of Object.entries(after)) {
    if (!Object.hasOwn(order, key) || sorted(order[key] as Json) !== sorted(value))
      data[key] = value
  }
  return data
}

/** The data with the answer in it, or a tag and its description in two lines. */
function afterCall(
  now: Data,
  response: Readonly<Record<string, string>> | undefined,
  { status = 0, text }: Extract<Outcome, { outcome: 'done' }>,
): Data | string {
  if (status !== 200 && status !== 201 && status !== 202) return `api_bad_answer\n${status}`
  const shown = text === '' ? 'the answer is empty' : text
  const no_json = `api_no_valid_json\nPlease check: ${shown}`
  if (response === undefined && text === '') return status === 202 ? now : no_json
  const body = jsonOf(text)
  if (response !== undefined) {
    const data: Record<string, Json> = { ...now }
    for (const [key, path] of Object.entries(response)) {
      const value = member(body, path)
      if (value === undefined && body === undefined && text !== '') return no_json
      data[key] = value ?? ''
    }
    return data
  }
  if (isObject(body)) return { ...now, ...body }
  return Array.isArray(body) ? { ...now, __conveyor_api_array__: body } : no_json
}

function jsonOf(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json
  } catch {
    return undefined
  }
}
