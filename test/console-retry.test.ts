/**
 * What an operator is told after a retry on the page: what became of the task, or of many, also
 * where a handler answers later than the retry is accepted.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { callback, defineProcess, end, go, node } from '../src/define.ts'
import type { Engine } from '../src/index.ts'
import { no_browser, testBrowser } from './support/browser.ts'
import { openConsole, type TestConsole } from './support/console-server.ts'
import { tasksOf } from './support/tasks-of.ts'

const browser = testBrowser()
const conv_id = '1500'

const charge = defineProcess({
  id: conv_id,
  title: 'Charge',
  params: { card: {}, waits: {} },
  nodes: {
    start: node(go('charge'), { title: 'Start' }),
    charge: node([callback(), go('paid')], { title: 'Charge the card' }),
    bank: node([callback(), go('paid')], { title: 'Wait for the bank' }),
    paid: end({ title: 'Paid', save: true }),
  },
})

/** A card that is not `good` is refused, some milliseconds after it was asked for. */
const handlers = {
  'Charge the card': {
    attempts_max: 1,
    async handler({ data }: { data: unknown }) {
      const { card } = data as { card: string }
      await new Promise((resolve) => setTimeout(resolve, 30))
      if (card !== 'good') throw new Error(`the card ${card} was refused`)
      return {}
    },
  },
}

describe('a retry', { skip: no_browser ?? false }, () => {
  let console: TestConsole
  let engine: Engine
  before(async () => {
    console = await openConsole({ handlers })
    ;({ engine } = console)
    await engine.processes.put(charge)
  })
  after(() => console?.close())

  async function fail(...refs: string[]): Promise<void> {
    for (const ref of refs) await engine.create({ conv_id, ref, data: { card: 'expired' } })
    for (;;) {
      const failed = await tasksOf(engine, conv_id, { status: 'failed' })
      if (refs.every((ref) => failed.some((task) => task.ref === ref))) return
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
  }

  const repair = (ref: string) => engine.modify({ conv_id, ref, data: { card: 'good' } })

  test('of one task says that it failed again, waits or has ended', async (t) => {
    await fail('one')
    const [task] = await tasksOf(engine, conv_id, { status: 'failed' })
    const { page } = await browser.visit(t, console.operator.link('operate'))
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    await page.goto(console.at(`task/${task?.obj_id}`))
    const retry = async (node = '', says: string) => {
      await page.getByRole('button', { name: 'Retry …' }).click()
      if (node !== '') {
        await page.getByLabel('From node').locator('option', { hasText: node }).waitFor({
          state: 'attached',
        })
        await page.getByLabel('From node').selectOption({ label: node })
      }
      await page.getByRole('button', { name: 'Retry', exact: true }).click()
      await page.getByRole('log', { name: 'Messages' }).getByText(says).waitFor()
    }
    await retry('', 'It failed again in “Charge the card”: the card expired was refused.')
    await repair('one')
    await retry('', 'The task has ended in “Paid”.')

    await fail('two')
    const [other] = await tasksOf(engine, conv_id, { status: 'failed' })
    await page.goto(console.at(`task/${other?.obj_id}`))
    await retry('Wait for the bank', 'The task waits in “Wait for the bank”.')
  })

  test('of many counts those that ended, wait and failed again', async (t) => {
    await fail('a', 'b', 'c', 'd', 'e')
    for (const ref of ['a', 'b']) await repair(ref)
    const { page } = await browser.visit(t, console.operator.link('operate'))
    const retryAll = async () => {
      await page.getByRole('checkbox', { name: 'Choose all that are shown' }).check()
      await page.getByRole('button', { name: 'Retry …' }).click()
      await page.getByRole('button', { name: /^Retry \d tasks/ }).click()
    }
    await page
      .getByRole('region', { name: /^Failed tasks/ })
      .getByRole('link')
      .first()
      .click()
    await page.getByRole('link', { name: 'e', exact: true }).waitFor()
    await retryAll()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('Of these 2 ended, 0 wait, 3 failed again.').waitFor()
    await dialog.getByRole('button', { name: 'Close' }).last().click()
    // What the engine has agrees with what was said.
    assert.equal((await tasksOf(engine, conv_id, { status: 'failed' })).length, 3)
  })

  test('of all that a filter finds, step by step, counts them too', async (t) => {
    const { page } = await browser.visit(t, console.operator.link('operate'))
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    const { token } = await (await page.request.get(console.at('session'))).json()
    const headers = { origin: console.operator.url, 'x-conveyor-token': token }
    await engine.modify({ conv_id, ref: 'c', data: { card: 'good' } })
    const data = { action: 'retry', filter: { conv_id } }
    const answer = await page.request.post(console.at('api/bulk'), { data, headers })
    const { changed, is_done, became } = await answer.json()
    assert.deepEqual(
      { changed, is_done, became },
      {
        ...{ changed: 3, is_done: true },
        became: { ended: 1, waiting: 0, failed: 2, running: 0 },
      },
    )
  })
})
