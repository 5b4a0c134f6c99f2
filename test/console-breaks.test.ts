/**
 * The operator's page where something breaks: its session, its server, its connection. What the
 * reader had open and had typed is there afterwards.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import { type OperatorServer, serveOperator } from '../src/operator.ts'
import { no_browser, testBrowser } from './support/browser.ts'
import { callback_process } from './support/cli-process.ts'
import { openConsole, type TestConsole } from './support/console-server.ts'
import { startRelay } from './support/relay.ts'

const browser = testBrowser()
const away = { may_be_away: true }
const conv_id = callback_process.obj_id

describe('the page goes on', { skip: no_browser ?? false }, () => {
  let console: TestConsole
  let secret: string
  before(async () => {
    console = await openConsole()
    const { engine } = console
    await engine.processes.put(callback_process)
    ;({ secret } = await engine.users.add({ id: 7 }))
    await engine.users.console(7, 'operate')
  })
  after(() => console?.close())

  async function signIn(page: Page): Promise<void> {
    await page.getByRole('textbox', { name: 'User' }).fill('7')
    await page.getByLabel('Secret', { exact: true }).fill(secret)
    await page.getByRole('button', { name: 'Sign in' }).click()
  }

  test('a session that was signed out is of no use to who has its cookie', async (t) => {
    const { page } = await browser.visit(t, console.at(''))
    await signIn(page)
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    const [stolen] = await page.context().cookies()
    assert.deepEqual(
      [stolen?.httpOnly, stolen?.sameSite, stolen?.path],
      [true, 'Strict', '/console'],
    )
    const headers = { cookie: `${stolen?.name}=${stolen?.value}` }
    const answer = async (): Promise<number> =>
      (await fetch(console.at('session'), { headers })).status
    assert.equal(await answer(), 200)
    await page.getByRole('button', { name: '7' }).click()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    assert.equal(await answer(), 401)
    await page.reload()
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  })

  test('the server is started anew under an open page', async (t) => {
    const first = await serveOperator(console.engine, { port: 0 })
    const { port } = first.address
    let second: OperatorServer | undefined
    t.after(() => second?.drain())
    const { obj_id } = await console.engine.create({ conv_id, ref: 'kept', data: { amount: 1 } })
    const { page } = await browser.visit(t, `${first.url}/console/task/${obj_id}`, away)
    await signIn(page)
    await page.getByRole('heading', { name: 'kept' }).waitFor()
    const find = page.getByRole('combobox', { name: /^Find a task/ })
    await find.fill('what was typed')
    await first.drain()
    await page.getByText('the page tries again').waitFor()
    second = await serveOperator(console.engine, { port })
    const dialog = page.getByRole('dialog', { name: 'Sign in' })
    await dialog.waitFor()
    await signIn(page)
    await dialog.waitFor({ state: 'detached' })
    assert.equal(await find.inputValue(), 'what was typed')
    await console.engine.modify({ conv_id, ref: 'kept', data: {} })
    await page.getByText('It is done').first().waitFor()
  })

  test('a connection breaks for a minute', async (t) => {
    const { port } = console.operator.address
    const line = await startRelay({ host: '127.0.0.1', port })
    t.after(() => line.close())
    const { page } = await browser.visit(t, `http://127.0.0.1:${line.port}/console/`, away)
    await signIn(page)
    await page.clock.install()
    const { obj_id = '' } = await console.engine.create({ conv_id, data: {} })
    await page.goto(`http://127.0.0.1:${line.port}/console/task/${obj_id}`)
    await page.getByRole('status').getByText('Live').waitFor()
    await line.cut()
    await page.getByText('the page tries again').waitFor()
    await console.engine.modify({ conv_id, obj_id, data: { brought: 'meanwhile' } })
    await page.clock.runFor(60_000)
    await page.getByText('the page tries again').waitFor()
    await line.mend()
    await page.clock.runFor(10_000)
    await page.getByText('meanwhile').first().waitFor()
    await page.getByRole('status').getByText('Live').waitFor()
  })
})
