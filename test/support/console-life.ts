/**
 * Half an hour in the life of an engine, for pictures and tests of the operator's page: the example
 * processes and one that sends invoices, with tasks that wait, have ended and have failed.
 *
 * Time and chance are given, so it is the same half hour each time.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { after, callback, defineProcess, end, go, node, setData } from '../../src/define.ts'
import type { Engine, EngineOptions } from '../../src/index.ts'
import { settled, type TestClock } from '../../src/testing.ts'

export const invoice_id = '1300'
/** Tasks whose amount is no number fail in `price`. */
export const invoice = defineProcess({
  id: invoice_id,
  title: 'Invoice',
  description: 'Sends an invoice and waits two weeks for the money.',
  params: { amount: {}, card: { masked: true } },
  nodes: {
    start: node(go('price'), { title: 'Start' }),
    price: node(
      [setData({ total: '$.math({{amount}}*1.2)' }, { types: { total: 'number' } }), go('mail')],
      { title: 'Price it' },
    ),
    mail: node([callback(), go('wait')], { title: 'Mail it' }),
    wait: node([callback(), go('paid'), after({ days: 14 }).go('late')], {
      title: 'Wait for the money',
    }),
    paid: end({ title: 'Paid', save: true }),
    late: end({ title: 'Late', save: true }),
  },
})

/** For the engine: mails to `nowhere` come back. */
export const life_handlers: NonNullable<EngineOptions['handlers']> = {
  'Mail it': {
    handler({ data }) {
      const { to } = data as { to?: string }
      if (to === 'nowhere') throw new Error('the mail server does not know this address')
      return { mailed: true }
    },
    ...{ attempts_max: 3, backoff_ms: 120_000 },
  },
}

const minutes = 30
const examples = new URL('../../src/examples/', import.meta.url)

export async function putExamples(engine: Engine): Promise<void> {
  for (const file of readdirSync(examples).filter((name) => name.endsWith('.conv.json'))) {
    await engine.processes.putMany(readFileSync(new URL(file, examples), 'utf8'))
  }
  await engine.processes.put(invoice)
}

export async function liveHalfHour(engine: Engine, clock: TestClock): Promise<void> {
  let count = 0
  for (let minute = 0; minute < minutes; minute++) {
    const busy = 3 + ((minute * 7) % 5) + (minute > 18 ? 4 : 0)
    for (let n = 0; n < busy; n++, count++) {
      await liveSome(engine, count, minute)
      clock.advance(60_000 / busy)
      await settled(engine)
    }
  }
}

/** What customers do in a few seconds. */
async function liveSome(engine: Engine, count: number, minute: number): Promise<void> {
  const create = (conv_id: number | string, ref: string, data: object) =>
    engine.create({ conv_id, ref, data })
  const modify = (conv_id: number | string, ref: string, data: object) =>
    engine.modify({ conv_id, ref, data })
  const amount = 20 + ((count * 137) % 480)
  const card = `4111 1111 1111 ${1000 + count}`
  const is_large = count % 17 === 3
  const order = { amount: is_large ? amount * 100 : amount, currency: 'EUR', card }
  await create(1235, `order-${count}`, order)
  if (is_large && count % 2 === 0) await modify(1235, `order-${count - 34}`, { approved: true })
  if (count > 12 && count % 5 !== 0) await modify(1235, `order-${count - 12}`, { paid: true })
  await create(1242, `parcel-${count}`, { kg: 1 + ((count * 11) % 40) })
  if (count % 2 === 0) await create(1244, `job-${count}`, { size: amount })
  if (count === 40) await create(1245, 'worker-1', {})
  if (count % 6 === 0) await create(1246, `account-${count}`, { plan: count % 4 ? 'paid' : 'free' })
  if (count % 3 === 0) await create(1247, `visit-${count}`, { account: `account-${count - 12}` })
  if (count % 9 === 0) await create(1240, `batch-${count}`, { parts: 2, amounts: [amount, 12] })
  if (count % 8 === 1) await create(1236, `report-${count}`, {})
  if (count % 8 === 5) await modify(1236, `report-${count - 4}`, { result: count % 3 ? 'ok' : '' })
  if (count % 4 === 0)
    await create(1234, `callback-${count}`, { note: 'a callback ends this task' })
  if (count % 4 === 3) await modify(1234, `callback-${count - 7}`, { done: true })
  await create(invoice_id, `invoice-${count}`, {
    amount: minute > 20 && count % 11 === 0 ? `${amount},50` : amount,
    to: minute > 16 && count % 13 === 0 ? 'nowhere' : `customer-${count}@example.com`,
    ...{
      card,
      lines: [{ article: 'tea', pieces: 1 + (count % 3), price: 4.5 }, { article: 'cup' }],
    },
  })
  if (count > 9 && count % 3 !== 0) await modify(invoice_id, `invoice-${count - 9}`, { paid: true })
}
