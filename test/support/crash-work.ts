/**
 * The work of the crash test, made so that everything a crash leaves shows where it came from.
 *
 * Every batch writes its name into all that it changes: the tasks it creates, which also have their
 * number, the tasks it wakes, and a pair of counters that only ever change together. So a batch
 * that is there in part shows, acknowledged or not.
 */

import type { Engine } from '../../src/engine/api.ts'

/** Tasks that wait for a modify, or for their timer to ring. */
export const timed = 'timed'
/** Tasks that only wait, among them the counters. */
export const waiting = 'waiting'
export const pairs = 4
export const timer_ms = 40

const node = (id: string, obj_type: number, condition: object = {}, options?: string): object => ({
  id,
  obj_type,
  title: id,
  condition: { logics: [], semaphors: [], ...condition },
  options,
})
const go = (to_node_id: string): object => ({ type: 'go', to_node_id })
const keep = '{"save_task":true}'

export const crash_processes: readonly object[] = [
  {
    obj_id: timed,
    scheme: {
      nodes: [
        node('start', 1, { logics: [go('wait')] }),
        node('wait', 0, {
          logics: [{ type: 'api_callback' }, go('done')],
          semaphors: [{ type: 'time', value: timer_ms / 1000, to_node_id: 'late' }],
        }),
        node('late', 0, { logics: [{ type: 'set_param', extra: { late: 'yes' } }, go('done')] }),
        node('done', 2, {}, keep),
      ],
    },
  },
  {
    obj_id: waiting,
    scheme: {
      nodes: [
        node('start', 1, { logics: [go('wait')] }),
        node('wait', 0, { logics: [{ type: 'api_callback' }, go('wait')] }),
      ],
    },
  },
]

/** The processes and the counters; what is there already stays. */
export async function makeReady(engine: Engine): Promise<void> {
  for (const definition of crash_processes) await engine.putProcess(definition)
  for (let pair = 0; pair < pairs; pair++) {
    for (const side of ['left', 'right']) {
      const ref = counterRef(side, pair)
      await engine.create({ conv_id: waiting, ref, data: { counter: ref } })
    }
  }
}

/** What a task of a batch has for data. */
export interface Mark {
  readonly batch: string
  /** How many tasks the batch makes. */
  readonly parts: number
  readonly pair: number
  /** Ids of the tasks it wakes. */
  readonly wakes: readonly string[]
}

export interface Batch {
  readonly name: string
  readonly mark: Mark
  readonly ops: readonly object[]
}

/** `round.n`, so that later names are greater as texts too. */
export function batchName(round: number, n: number): string {
  return `${String(round).padStart(4, '0')}.${String(n).padStart(6, '0')}`
}

/** The ops of a batch, in both processes, with one among them that is refused. */
export function batchOf(name: string, pair: number, wakes: readonly string[], more: number): Batch {
  const parts = 2 + more
  const mark: Mark = { batch: name, parts, pair, wakes }
  const create = (conv_id: string, ref: string | null): object => ({
    ...{ type: 'create', obj: 'task', conv_id, ref, data: mark },
  })
  const modify = (conv_id: string, target: object, data: object): object => ({
    ...{ type: 'modify', obj: 'task', conv_id, ...target, data },
  })
  const count = (side: string): object =>
    modify(waiting, { ref: counterRef(side, pair) }, { by: name })
  return {
    name,
    mark,
    ops: [
      create(timed, `${name}/a`),
      count('left'),
      ...wakes.map((obj_id) => modify(timed, { obj_id }, { by: name })),
      create(waiting, counterRef('left', pair)),
      create(waiting, `${name}/b`),
      ...Array.from({ length: more }, () => create(timed, null)),
      count('right'),
    ],
  }
}

export const counterRef = (side: string, pair: number): string => `${side} ${pair}`

/** What the child says of a batch once it has its results; one line of JSON. */
export interface Ack {
  readonly batch: string
  readonly pair: number
  /** The tasks it made. */
  readonly made: readonly string[]
  /** The tasks it woke, those alone for which the answer was `ok`. */
  readonly woke: readonly string[]
  /** Its ops, refused ones too. */
  readonly ops: number
}
