import { after, callback, defineProcess, end, go } from 'conveyor-engine/define'

// An order waits for its payment, at most three days; then your code charges it.
export const order = defineProcess({
  id: 1,
  title: 'Order',
  nodes: {
    start: go('wait'),
    wait: [callback(), go('charge'), after({ days: 3 }).go('late')],
    charge: [callback({ error: 'refused' }), go('done')], // the handler of this name, below
    done: end({ save: true }),
    refused: end({ save: true }),
    late: end({ save: true }),
  },
})

// Repeated until it returns, also over a restart; the key is the same in each attempt.
export const handlers = {
  '1/charge': async ({ data }, { key }) => ({ receipt: `${data.amount} charged as ${key}` }),
}
