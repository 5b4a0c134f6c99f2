/**
 * What templates read of other processes, on an engine: counts and sums of nodes, data of tasks, by
 * id and by alias, with and without the right to them.
 */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openEngine } from '../src/index.ts'
import { go, node } from './support/processes.ts'

/** Sums `{{n}}` in its node `sum`, and waits in `wait`. */
const account = {
  obj_id: 7,
  conv_type: 'state',
  scheme: {
    nodes: [
      { id: 'start', obj_type: 1, condition: { logics: [go('sum')] } },
      node('sum', 0, [
        { type: 'api_sum', extra: [{ id: '1475', name: 'total', value: '{{n}}' }] },
        go('wait'),
      ]),
      { id: 'wait', obj_type: 0, condition: { logics: [] } },
    ],
  },
}

/** Sets `got` to the text of the template, and ends. */
const reader = (template: string) => ({
  obj_id: 1,
  scheme: {
    nodes: [
      node('start', 1, [
        { type: 'set_param', extra: { got: template }, extra_type: { got: 'string' } },
        go('end'),
      ]),
      { id: 'end', obj_type: 2, options: { save_task: true } },
    ],
  },
})

const data = { c: 7, w: 'wait', a: 'accounts', r: 'ann' }

// [template, what a user gets who may show tasks of process 7, and one who may not]
const no = (conv_id: string, user = 13001) =>
  `access_denied Param: got, User: ${user}, Conv_id: ${conv_id}`
const rows: readonly (readonly [template: string, granted: string, ungranted: string])[] = [
  ['{{conv[7].node[wait].count}}', '2', '2'],
  ['{{conv[@accounts].node[wait].count}}', '2', '2'],
  ['{{conv[{{c}}].node[{{w}}].count}}', '2', no('7')],
  ['{{conv[@{{a}}].node[wait].count}}', '2', no('@accounts')],
  ['{{conv[7].node[none].count}}', '0', '0'],
  ['{{conv[7].node[sum].total}}', '5.5', '5.5'],
  ['{{conv[7].node[sum].1475}}', '5.5', '5.5'],
  ['{{conv[{{c}}].node[sum].1475}}', '5.5', no('7')],
  ['{{conv[7].node[sum].other}}', '', ''],
  ['{{conv[9].node[wait].count}}', no('9', 13000), no('9')],
  ['{{conv[@nobody].node[wait].count}}', no('@nobody', 13000), no('@nobody')],
  ['{{conv[7].ref[ann]}}', '{"n":"2.5"}', '{"n":"2.5"}'],
  ['{{conv[@accounts].ref[{{r}}].n}}', '2.5', '2.5'],
  ['{{conv[{{c}}].ref[{{r}}].n}}', '2.5', no('7')],
  ['{{conv[7].ref[nobody].n}}', '', ''],
]

test('a template reads counts, sums and data of another process', async () => {
  await using engine = await openEngine(':memory:')
  await engine.processes.putMany([account, reader('')])
  await engine.processes.setAlias('accounts', 7)
  await engine.create({ conv_id: 7, ref: 'ann', data: { n: '2.5' } })
  await engine.create({ conv_id: 7, ref: 'bob', data: { n: 3 } })
  for (const user of ['13000', '13001']) {
    await engine.users.add({ id: user })
    await engine.processes.share(1, user)
  }
  await engine.processes.share(7, '13000', ['show'])
  const gets = async (user: string): Promise<unknown> => {
    const create = { type: 'create', obj: 'task', conv_id: 1, data }
    const [made] = await engine.apply([create], { user })
    const task = await engine.task({ conv_id: 1, obj_id: made?.obj_id ?? '' })
    const { tag, description } = task?.status_details ?? {}
    const got = (task?.data as { got?: unknown } | undefined)?.got
    return tag === undefined ? got : `${tag} ${description}`
  }
  for (const [template, granted, ungranted] of rows) {
    await engine.processes.put(reader(template))
    assert.deepEqual([await gets('13000'), await gets('13001')], [granted, ungranted], template)
  }
})
