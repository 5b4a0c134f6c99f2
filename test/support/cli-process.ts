/**
 * Definitions for tests of the command line: one waits for a callback, and one fails its tasks,
 * because its node requires a number.
 */
import { node } from './processes.ts'

const end = { id: 'end', obj_type: 2, title: 'Done', condition: { logics: [], semaphors: [] } }

export const callback_process = {
  obj_type: 1,
  obj_id: 1234,
  title: 'Order',
  conv_type: 'process',
  status: 'active',
  params: [
    { name: 'card', type: 'string', flags: ['auto-clear'], regex: '', regex_error_text: '' },
  ],
  scheme: {
    nodes: [
      node('start', 1, [{ type: 'go', to_node_id: 'wait' }], { title: 'Start' }),
      node(
        'wait',
        0,
        [
          { type: 'api_callback', is_sync: false },
          { type: 'go', to_node_id: 'end' },
        ],
        { title: 'Wait "bank"' },
      ),
      { ...end, options: '{"save_task":true}' },
    ],
  },
}

export const failing_process = {
  ...callback_process,
  obj_id: 77,
  title: 'Fails',
  params: [],
  scheme: {
    nodes: [
      node(
        'start',
        1,
        [
          { type: 'set_param', extra: { sum: '{{text}}' }, extra_type: { sum: 'number' } },
          { type: 'go', to_node_id: 'end' },
        ],
        { title: 'Start' },
      ),
      end,
    ],
  },
}
