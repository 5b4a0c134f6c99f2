/**
 * Two processes and some hundred tasks in every state, for tests of search and bulk work: tasks
 * that wait for a callback or a timer, failed ones, ended and canceled ones, created one after
 * another while the clock goes on.
 */

import type { Engine, Task } from '../../src/index.ts'
import type { FakeClock } from './fake-clock.ts'
import { node } from './processes.ts'

/** `kind` says where a task goes: `wait`, `bank`, `fail` or `done`. */
export function sortingProcess(obj_id: string): object {
  const goIf = (kind: string, to_node_id: string): object => ({
    type: 'go_if_const',
    to_node_id,
    conditions: [{ param: 'kind', const: kind, fun: 'eq', cast: 'string' }],
  })
  const go = { type: 'go', to_node_id: 'end' }
  const callback = { type: 'api_callback' }
  const semaphors = [{ type: 'time', value: '{{at}}', to_node_id: 'end' }]
  const failing = { type: 'set_param', extra: { n: '{{kind}}' }, extra_type: { n: 'number' } }
  return {
    obj_id,
    title: `Process ${obj_id}`,
    scheme: {
      nodes: [
        node(
          'start',
          1,
          [
            ...[goIf('wait', 'w1'), goIf('bank', 'w2'), goIf('fail', 'f1')],
            { type: 'go', to_node_id: 'end' },
          ],
          { title: 'Start' },
        ),
        { id: 'w1', obj_type: 0, title: 'Wait', condition: { logics: [callback, go] } },
        { id: 'w2', obj_type: 0, title: 'Bank', condition: { logics: [callback, go], semaphors } },
        { id: 'f1', obj_type: 0, title: 'Fail', condition: { logics: [failing, go] } },
        { id: 'x1', obj_type: 0, title: 'Wait', condition: { logics: [callback, go] } },
        { id: 'end', obj_type: 2, title: 'Done', options: { save_task: true } },
      ],
    },
  }
}

const kinds = ['wait', 'bank', 'fail', 'done', 'wait', 'bank', 'wait'] as const

/** Creates `count` tasks by turns in processes a and b; some of them are changed and canceled. */
export async function fill(engine: Engine, clock: FakeClock, count: number): Promise<string[]> {
  for (const conv_id of ['a', 'b']) await engine.processes.put(sortingProcess(conv_id))
  const ids: string[] = []
  for (let n = 0; n < count; n++) {
    clock.set(clock.now_ms() + (n % 3) * 400)
    const kind = kinds[n % kinds.length] as string
    const { obj_id = '' } = await engine.create({
      conv_id: n % 3 === 0 ? 'b' : 'a',
      ...(n % 4 === 0 ? {} : { ref: `${n % 2 === 0 ? 'order' : 'bill'}-${n}` }),
      data: { kind, n, at: 2e9 + ((n * 7) % 100), item: { price: n / 10 }, odd: n % 2 === 1 },
    })
    ids.push(obj_id)
    const target = { conv_id: n % 3 === 0 ? 'b' : 'a', obj_id }
    if (n % 11 === 0) await engine.tasks.cancel(target)
    if (n % 10 === 3) await engine.modify({ ...target, data: { late: true } })
  }
  return ids
}

/** All tasks, each read by itself. */
export async function readAll(engine: Engine, ids: readonly string[]): Promise<Task[]> {
  const found: Task[] = []
  for (const obj_id of ids) {
    for (const conv_id of ['a', 'b']) {
      const task = await engine.task({ conv_id, obj_id })
      if (task !== undefined) found.push(task)
    }
  }
  return found
}
