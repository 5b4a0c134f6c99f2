/**
 * The processes of the soak. Every task of them ends within a few seconds, but for those that
 * stand, which wait for ever and are changed again and again.
 */
import {
  after,
  callback,
  callHttp,
  callProcess,
  defineProcess,
  end,
  go,
  reply,
  runCode,
  setData,
} from '../../src/define.ts'

/** Waits for a modify, with a timer that hardly ever fires. */
export const order_id = 'order'
/** Waits a second for its timer; what webhooks and the schedule make. */
export const webhook_id = 'timed'
/** Code, a call over HTTP, and a call of another process. */
export const worked_id = 'worked'
/** Answers a synchronous request. */
export const asked_id = 'asked'
export const standing_id = 'standing'
/** Fails in its node, and is canceled there. */
export const failing_id = 'failing'
const priced_id = 'priced'
/** With the user who signs. */
export const shared: readonly string[] = [
  order_id,
  webhook_id,
  worked_id,
  asked_id,
  standing_id,
  failing_id,
]

export const standingRef = (n: number): string => `standing-${n}`

/** `stub` is the URL that calls go to. */
export function processesOf(stub: string): object[] {
  const kept = end({ save: true })
  const definitions = [
    defineProcess({
      id: order_id,
      nodes: {
        start: go('wait'),
        wait: [callback(), go('done'), after({ minutes: 10 }).go('late')],
        done: kept,
        late: kept,
      },
    }),
    defineProcess({
      id: webhook_id,
      nodes: { start: go('wait'), wait: after({ seconds: 1 }).go('done'), done: kept },
    }),
    defineProcess({
      id: priced_id,
      nodes: { start: [reply({ price: 12 }), go('done')], done: end() },
    }),
    defineProcess({
      id: worked_id,
      nodes: {
        start: go('code'),
        code: [runCode('data.sum = data.n + 1'), go('call')],
        call: [callHttp(stub, { data: { n: '{{n}}' } }), go('price')],
        price: [callProcess(priced_id), go('done')],
        done: kept,
      },
    }),
    defineProcess({
      id: asked_id,
      nodes: {
        start: go('call'),
        // Nobody is there to be answered where the connection was cut.
        call: [
          callHttp('{{__callback_url}}', { data: { got: '{{n}}' }, error: 'done' }),
          go('done'),
        ],
        done: end(),
      },
    }),
    defineProcess({
      id: standing_id,
      nodes: { start: go('wait'), wait: [callback(), go('wait')] },
    }),
    defineProcess({
      id: failing_id,
      nodes: {
        start: [setData({ sum: '{{text}}' }, { types: { sum: 'number' } }), go('done')],
        done: end(),
      },
    }),
  ]
  return definitions
}
