/**
 * What the tests of handlers share: a process whose one node a handler answers, by the logic type
 * `db_call` or by the title `Charge`, and waits that count turns of the event loop instead of time.
 */
import assert from 'node:assert/strict'
import type { Logger } from '../../src/core/log.ts'
import type { Task } from '../../src/core/model.ts'
import type { Engine } from '../../src/engine/api/engine-api.ts'
import type { FakeClock } from './fake-clock.ts'
import { type Harness, memoryHarness } from './model-setup.ts'

export const go = (to_node_id: string) => ({ type: 'go', to_node_id })
export const end = { obj_type: 2, options: { save_task: true } }

/** start → work, whose logics are given → done, or failed where a logic names it. */
export function processWith(
  logics: readonly object[],
  more: object = {},
  { obj_id = 1, title = 'Charge' }: { obj_id?: number | string; title?: string } = {},
): object {
  return {
    obj_id,
    scheme: {
      nodes: [
        { id: 'start', obj_type: 1, condition: { logics: [go('work')] } },
        { id: 'work', obj_type: 0, title, condition: { logics, ...more } },
        { id: 'done', ...end },
        { id: 'failed', ...end },
      ],
    },
  }
}

export const waiting = [{ type: 'api_callback', err_node_id: 'failed' }, go('done')]
export const by_kind = processWith([{ type: 'db_call', err_node_id: 'failed' }, go('done')])
export const by_title = processWith(waiting)
export const unguarded = processWith([{ type: 'api_callback' }, go('done')])

/** Turns of the event loop until `is` holds. */
export async function until(is: () => boolean | Promise<boolean>): Promise<void> {
  for (let turns = 0; turns < 20_000; turns++) {
    if (await is()) return
    await new Promise((resolve) => setImmediate(resolve))
  }
  throw new Error('it never came to be')
}

export async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve))
}

export async function created(
  engine: Engine,
  data: object = { a: 1 },
  ref?: string,
  conv_id: number | string = 1,
): Promise<string> {
  const result = await engine.create({ conv_id, data, ...(ref === undefined ? {} : { ref }) })
  assert.equal(result.proc, 'ok')
  return result.obj_id as string
}

export async function taskOf(
  engine: Engine,
  obj_id: string,
  conv_id: number | string = 1,
): Promise<Task> {
  return (await engine.task({ conv_id, obj_id })) as Task
}

export async function atNode(
  engine: Engine,
  obj_id: string,
  node_id: string,
  conv_id: number | string = 1,
): Promise<Task> {
  await until(async () => (await taskOf(engine, obj_id, conv_id)).node_id === node_id)
  return taskOf(engine, obj_id, conv_id)
}

export interface Opened {
  readonly harness: Harness
  readonly clock: FakeClock
  readonly engine: Engine
}

export async function opened(options: Parameters<typeof memoryHarness>[0] = {}): Promise<Opened> {
  const harness = memoryHarness(options)
  return { harness, clock: harness.clock, engine: await harness.open() }
}

export function failure(tag: string, description: string, error_type = 'software'): object {
  return {
    __conveyor_handler_return_type_error__: error_type,
    __conveyor_handler_return_type_tag__: tag,
    __conveyor_handler_return_description__: description,
  }
}

/** A logger that keeps its warnings and errors. */
export function linesLogger(): Logger & { readonly lines: [level: string, object][] } {
  const lines: [string, object][] = []
  const at =
    (level: string) =>
    (fields: object): void =>
      void lines.push([level, fields])
  return {
    lines,
    debug() {},
    info() {},
    warn: at('warn'),
    error: at('error'),
  }
}
