/**
 * What an operator does on the page in a browser, each step by what he sees: a failed task found,
 * mended, retried and seen ending, by mouse and by keys alone; a call copied to a shell; a process
 * imported.
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import type { Page } from 'playwright-core'
import { serveHttp } from '../src/http.ts'
import type { Engine } from '../src/index.ts'
import { no_browser, testBrowser } from './support/browser.ts'
import { invoice, invoice_id, life_handlers } from './support/console-life.ts'
import { openConsole, type TestConsole } from './support/console-server.ts'

const browser = testBrowser()
const conv_id = invoice_id

describe('an operator', { skip: no_browser ?? false }, () => {
  let console: TestConsole
  let engine: Engine
  let http: Awaited<ReturnType<typeof serveHttp>>
  before(async () => {
    const servers: { http?: string } = {}
    console = await openConsole({ handlers: life_handlers }, { servers })
    ;({ engine } = console)
    http = await serveHttp(engine, { port: 0 })
    servers.http = http.url
    await engine.processes.put(invoice)
  })
  after(async () => {
    await http?.drain()
    await console?.close()
  })

  async function textOf(ref: string): Promise<string | undefined> {
    return (await engine.task({ conv_id, ref }))?.data_text
  }

  test('finds a failed task, mends its data, retries it and sees it end', async (t) => {
    await engine.create({ conv_id, ref: 'dear', data: { amount: 'dear', count: 1 } })
    const { page } = await browser.visit(t, console.operator.link('operate'))
    const press = (name: string) => page.getByRole('button', { name, exact: true }).click()
    await page
      .getByRole('region', { name: /^Failed/ })
      .getByRole('link', { name: /newest/ })
      .click()
    await page.getByRole('heading', { name: 'dear' }).waitFor()
    await press('Change …')
    await press('Change amount')
    await page.getByLabel('As', { exact: true }).selectOption('json')
    await page.getByLabel('Value', { exact: true }).fill('9007199254740993.10')
    await press('Set')
    await press('Send changes …')
    await press('Update 1 field')
    await page.getByText('The data was changed.').waitFor()
    // Each digit, and what was not touched as it was.
    assert.equal(await textOf('dear'), '{"amount":9007199254740993.10,"count":1}')
    await press('Retry …')
    await press('Retry')
    await page.getByText('It waits for a callback').waitFor()
    await press('Send a callback …')
    await page.getByLabel('Data, as JSON').fill('{"paid": true}')
    await press('Send')
    await page.getByText('The task has ended while you looked: it is done.').waitFor()
  })

  test('does so by keys alone', async (t) => {
    const { secret } = await engine.users.add({ id: 9 })
    await engine.users.console(9, 'operate')
    await engine.create({ conv_id, ref: 'by-keys', data: { amount: 'ten' } })
    const { page } = await browser.visit(t, console.at(''))
    const { keyboard } = page
    await tabTo(page, 'User')
    await keyboard.type('9')
    await tabTo(page, 'Secret')
    await keyboard.type(secret)
    await keyboard.press('Enter')
    await page.getByRole('link', { name: 'Invoice' }).first().waitFor()
    await keyboard.press('/')
    await keyboard.type('by-k')
    await page.getByRole('option', { name: /^by-keys/ }).waitFor()
    await keyboard.press('Enter')
    await page.getByRole('heading', { name: 'by-keys' }).waitFor()
    await tabTo(page, 'Change …')
    await keyboard.press('Enter')
    await tabTo(page, 'Change amount')
    await keyboard.press('Enter')
    await keyboard.press('Control+A')
    await keyboard.type('10')
    await keyboard.press('Enter')
    await tabTo(page, 'Send changes …')
    await keyboard.press('Enter')
    await tabTo(page, 'Update 1 field')
    await keyboard.press('Enter')
    await page.getByText('The data was changed.').waitFor()
    await tabTo(page, 'Retry …')
    await keyboard.press('Enter')
    await tabTo(page, 'Retry')
    await keyboard.press('Enter')
    await page.getByText('It waits for a callback').waitFor()
    await tabTo(page, '9 operate')
    await keyboard.press('Enter')
    await tabTo(page, 'Sign out')
    await keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  })

  test('copies a call that works in bash', async (t) => {
    const { secret } = await engine.users.add({ id: 11 })
    await engine.processes.share(conv_id, 11)
    const data = { amount: 1, note: `it's "quoted" \\ $HOME \`id\` \u202e` }
    const { obj_id } = await engine.create({ conv_id, ref: 'copied', data })
    const { page } = await browser.visit(t, console.operator.link('look'))
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    await page.goto(console.at(`task/${obj_id}`))
    await page.getByRole('button', { name: 'Copy a call …' }).click()
    const call = async (): Promise<unknown> => {
      await page.getByRole('button', { name: 'Copy the call with curl' }).click()
      const line = String(await page.evaluate('navigator.clipboard.readText()'))
      const options = { env: { ...process.env, SECRET: secret } }
      const script = line.replace('user=USER', 'user=11')
      const { stdout } = await promisify(execFile)('bash', ['-euc', script], options)
      return JSON.parse(stdout).ops[0]
    }
    const shown = (await call()) as { proc: string; data: typeof data }
    assert.deepEqual([shown.proc, shown.data.note], ['ok', data.note])
    await page.getByLabel('Call', { exact: true }).selectOption('modify')
    const sent = `{"paid":12345678901234567890.50,"text":${JSON.stringify(data.note)}}`
    await page.getByLabel('Data, as JSON').fill(sent)
    assert.equal(((await call()) as { proc: string }).proc, 'ok')
    assert.ok((await textOf('copied'))?.includes('12345678901234567890.50'))
  })

  test('imports a file: its mistakes at their nodes, then as a version', async (t) => {
    const { page } = await browser.visit(t, console.operator.link('administer'))
    await page.getByRole('link', { name: 'Invoice' }).first().click()
    await page.getByRole('button', { name: 'Import…' }).waitFor()
    const choose = async (name: string, definition: object): Promise<void> => {
      const buffer = Buffer.from(JSON.stringify(definition))
      const file = { name, mimeType: 'application/json', buffer }
      await page.locator('input[type=file]').setInputFiles(file)
    }
    const [start, price, ...others] = invoice.scheme.nodes
    const wrong = { ...price, condition: { logics: [{ type: 'go', to_node_id: 'nowhere' }] } }
    await choose('wrong.json', { ...invoice, scheme: { nodes: [start, wrong, ...others] } })
    const dialog = page.getByRole('dialog', { name: 'Import a file' })
    await dialog.getByText('nothing is stored').waitFor()
    await dialog.getByRole('button', { name: 'Price it' }).click()
    await page.getByRole('region', { name: 'Mistakes of the file' }).getByText('nowhere').waitFor()
    await page.getByRole('button', { name: /^Price it.*nowhere/ }).waitFor()

    await page.evaluate(dropped('notes.txt', 'This is no definition. <script>ran = 1</script>'))
    await dialog.getByRole('alert').waitFor()
    assert.equal(await dialog.getByRole('button', { name: 'Import', exact: true }).count(), 0)
    await dialog.getByRole('button', { name: 'Close' }).last().click()
    assert.equal((await engine.processes.show(conv_id)).version, 1)

    const renamed = { ...price, title: 'Price the invoice' }
    await choose('right.json', { ...invoice, scheme: { nodes: [start, renamed, ...others] } })
    await dialog.getByRole('button', { name: 'Import', exact: true }).click()
    await page.getByText('right.json is imported.').waitFor()
    await page
      .getByRole('button', { name: /^Price the invoice/ })
      .first()
      .waitFor()
    assert.equal((await engine.processes.show(conv_id)).version, 2)
  })
})

const tabs_max = 100

/** Presses Tab until what has this name has the focus, which must be seen then. */
async function tabTo(page: Page, name: string): Promise<void> {
  for (let tabs = 0; tabs < tabs_max; tabs++) {
    await page.keyboard.press('Tab')
    const [found, is_seen] = (await page.evaluate(focused)) as [string, boolean]
    assert.ok(is_seen, `the focus is not seen on ${found}`)
    if (found === name) return
  }
  assert.fail(`${name} is not reached by Tab`)
}

/** Code for the page: the name of what has the focus, and whether one sees that it has it. */
const focused = `(() => {
  const at = document.activeElement
  const labels = [...(at.labels ?? [])].map((label) => label.textContent)
  const name = at.getAttribute('aria-label') ?? labels[0] ?? at.innerText ?? ''
  const style = getComputedStyle(at)
  const is_seen = at === document.body || style.outlineStyle !== 'none' || style.boxShadow !== 'none'
  return [name.replaceAll(/[^\\p{L}\\p{N}… ]+/gu, ' ').trim().replaceAll(/ +/g, ' '), is_seen]
})()`

/** Code for the page: a file is dropped on the window. */
function dropped(name: string, text: string): string {
  const file = `new File([${JSON.stringify(text)}], ${JSON.stringify(name)})`
  return `(() => {
    const dataTransfer = new DataTransfer()
    dataTransfer.items.add(${file})
    const init = { dataTransfer, bubbles: true, cancelable: true }
    document.body.dispatchEvent(new DragEvent('dragover', init))
    document.body.dispatchEvent(new DragEvent('drop', init))
  })()`
}
