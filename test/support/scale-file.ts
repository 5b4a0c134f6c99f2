/**
 * A file with a given number of waiting tasks, each with a ref, some data and a timer that is far
 * away: what an installation looks like that has been at work for long. Made through the engine, in
 * this process, a thousand creates in a list.
 */

import { stat } from 'node:fs/promises'
import type { Engine } from '../../src/engine/api/engine-api.ts'
import { openEngine } from '../../src/open.ts'
import { node } from './processes.ts'

export const scale_conv_id = '1234'

/** The nth task's ref; n counts from 0. */
export const scaleRef = (n: number): string => `order-${n}`

export const scaleData = (n: number): object => ({
  amount: n,
  currency: 'EUR',
  customer: `customer ${n % 1_000}`,
  paid: false,
})

/** start → waits for a callback, 30 days at most → end */
export const scale_process = {
  obj_id: scale_conv_id,
  title: 'Order',
  scheme: {
    nodes: [
      node('start', 1, [{ type: 'go', to_node_id: 'wait' }]),
      node('wait', 0, [{ type: 'api_callback' }, { type: 'go', to_node_id: 'end' }], {
        semaphors: [{ type: 'time', value: 2_592_000, dimension: 'day', to_node_id: 'end' }],
      }),
      { id: 'end', obj_type: 2 },
    ],
  },
}

const list_ops = 1_000

export interface ScaleFile {
  readonly path: string
  readonly tasks: number
  readonly bytes: number
  readonly bytes_per_task: number
  /** Creates in a second, the whole time of making taken. */
  readonly creates_per_s: number
}

/** Makes the file at a path where none is. `lists_at_once` lists of a thousand ops are under way. */
export async function makeScaleFile(
  path: string,
  tasks: number,
  lists_at_once = 4,
): Promise<ScaleFile> {
  const began_ms = performance.now()
  const engine = await openEngine(path)
  await engine.processes.put(scale_process)
  let next = 0
  await Promise.all(
    Array.from({ length: lists_at_once }, async () => {
      while (next < tasks) {
        const from = next
        next = Math.min(tasks, from + list_ops)
        await createTasks(engine, from, next)
      }
    }),
  )
  await engine.close()
  const { size: bytes } = await stat(path)
  const seconds = (performance.now() - began_ms) / 1000
  return {
    ...{ path, tasks, bytes },
    bytes_per_task: bytes / tasks,
    creates_per_s: tasks / seconds,
  }
}

async function createTasks(engine: Engine, from: number, to: number): Promise<void> {
  const ops = Array.from({ length: to - from }, (_, at) => ({
    type: 'create',
    obj: 'task',
    conv_id: scale_conv_id,
    ref: scaleRef(from + at),
    data: scaleData(from + at),
  }))
  const results = await engine.apply(ops)
  const refused = results.find(({ proc }) => proc !== 'ok')
  if (refused !== undefined) throw new Error(`a create was refused: ${JSON.stringify(refused)}`)
}
