/**
 * A whole engine on a store in memory, with a clock that the test sets, whose one process calls a
 * real server on loopback.
 */

import type { ServerResponse } from 'node:http'
import type { Task } from '../../src/core/model.ts'
import type { Engine, EngineOptions } from '../../src/engine/api/engine-api.ts'
import { type CallServer, callServer } from './call-server.ts'
import { memoryHarness } from './model-setup.ts'
import { eventually } from './waits.ts'

export const conv_id = 'calls'
export const go = (to_node_id: string) => ({ type: 'go', to_node_id })

export function processOf(logic: object, more: { semaphors?: object[]; obj_id?: string } = {}) {
  const { semaphors = [], obj_id = conv_id } = more
  const node = (id: string, obj_type: number, logics: object[], rest: object = {}) => ({
    ...{ id, obj_type, title: id, options: { save_task: true } },
    condition: { logics, semaphors: [], ...rest },
  })
  return {
    obj_id,
    scheme: {
      nodes: [
        node('start', 1, [go('call')]),
        node('call', 0, [{ type: 'api', err_node_id: 'bad', ...logic }, go('done')], { semaphors }),
        node('done', 2, []),
        node('bad', 2, []),
        node('late', 2, []),
      ],
    },
  }
}

export async function taskOf(
  engine: Engine,
  obj_id: string | undefined,
  conv = conv_id,
): Promise<Task> {
  return (await engine.task({ conv_id: conv, obj_id: obj_id as string })) as Task
}

export async function ended(
  engine: Engine,
  obj_id: string | undefined,
  conv = conv_id,
): Promise<Task> {
  await eventually(async () => (await taskOf(engine, obj_id, conv)).status === 'processed')
  return taskOf(engine, obj_id, conv)
}

export interface Stage {
  readonly harness: ReturnType<typeof memoryHarness>
  readonly server: CallServer
  readonly engine: Engine
}

export async function stage(
  answer: Parameters<typeof callServer>[0],
  run: (stage: Stage) => Promise<void>,
  { limits = {}, allow_hosts = [] }: EngineOptions = {},
): Promise<void> {
  const server = await callServer(answer)
  const harness = memoryHarness({ limits, allow_hosts: [server.host, ...allow_hosts] })
  const engine = await harness.open()
  try {
    await run({ harness, server, engine })
  } finally {
    await engine.close()
    await server.close()
  }
}

/** A server that answers only when told, and knows how many it kept waiting at most. */
export function patient() {
  const open: ServerResponse[] = []
  let most = 0
  return {
    open,
    most: () => most,
    answer: ((_asked, _request, response) => {
      open.push(response)
      most = Math.max(most, open.length)
    }) satisfies Parameters<typeof callServer>[0],
    letGo: (text = '{}') => open.shift()?.end(text),
  }
}
