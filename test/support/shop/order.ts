/**
 * The processes of the shop: the life of an order, and the report of each due time.
 *
 * An order ends in `done` or `refused`. One that a handler gave up stays `failed` in its node until
 * the next report has it tried again.
 */
import { z } from 'zod'
import { after, callback, defineProcess, end, go, when } from '../../../src/define.ts'

export const order = defineProcess({
  id: 'order',
  title: 'Order',
  data: z.object({
    amount: z.number().positive(),
    card: z.string(),
    /** From the bank: the charge, or that it declined the card. */
    charge_id: z.string().optional(),
    declined: z.boolean().optional(),
    /** From the bank's webhook, which may come before our charge handler has the bank's answer. */
    paid: z.boolean().optional(),
  }),
  nodes: {
    start: go('charge'),
    charge: [callback(), when('declined', 'eq', true).go('refused'), go('payment')],
    payment: [
      when('paid', 'eq', true).go('receipt'),
      callback(),
      when('paid', 'eq', true).go('receipt'),
      go('refused'),
      after({ days: 1 }).go('refused'),
    ],
    receipt: [callback(), go('done')],
    done: end({ save: true }),
    refused: end({ save: true }),
  },
})

export const report = defineProcess({
  id: 'report',
  title: 'Report',
  data: z.object({ due_ms: z.number(), orders: z.number().optional() }),
  nodes: {
    start: go('write'),
    write: [callback(), go('done')],
    done: end({ save: true }),
  },
})
