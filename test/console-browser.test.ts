/**
 * The operator's page in a browser, as an operator uses it: from the first visit by the printed link
 * to the end of a task that had failed.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { countText } from '../src/console/page/parts/texts.ts'
import { type CallName, type Right, rights, token_header } from '../src/console/server/messages.ts'
import type { Engine } from '../src/index.ts'
import { no_browser, testBrowser } from './support/browser.ts'
import { callback_process, failing_process } from './support/cli-process.ts'
import { node_args, type Served, startServe } from './support/cli-serve.ts'
import { openConsole, type TestConsole } from './support/console-server.ts'
import { tempFolder } from './support/package-folder.ts'
import { tasksOf } from './support/tasks-of.ts'

const browser = testBrowser()
const { obj_id: order_id } = callback_process
const { obj_id: fails_id } = failing_process
const no_task = '0'.repeat(24)

describe('the page of a demo', { skip: no_browser ?? false }, () => {
  const folder = tempFolder()
  let served: Served
  before(async () => {
    served = await startServe([
      ...[process.execPath, ...node_args, 'serve', '--demo', '--json'],
      ...['--db', join(folder.path, 'tasks.lmdb')],
      ...['--http', '127.0.0.1:0', '--operator', '127.0.0.1:0'],
    ])
  })
  after(async () => {
    await served?.stop()
    folder.remove()
  })

  test('a first visit is by the link that `serve --demo` prints, once', async (t) => {
    const { link } = served.line.demo as { link: string }
    const { page, requests } = await browser.visit(t, link)
    await page.getByRole('link', { name: 'Callback demo' }).waitFor()
    assert.equal(page.url(), `${served.line.operator}/console/`)
    const token = new URL(link).hash.replace('#link=', '')
    // Playwright tells the page itself with what is behind the #, which is not sent.
    assert.deepEqual(
      requests.slice(1).filter((url) => url.includes(token)),
      [],
    )
    const { page: second } = await browser.visit(t, link)
    await second.getByText('A link works once').waitFor()
  })
})

describe('the page', { skip: no_browser ?? false }, () => {
  let console: TestConsole
  let engine: Engine
  before(async () => {
    console = await openConsole()
    ;({ engine } = console)
    await engine.processes.put(callback_process)
    await engine.processes.put(failing_process)
  })
  after(() => console?.close())

  test('counts change while a load runs, and are right at its end', async (t) => {
    const { page } = await browser.visit(t, console.operator.link('look'))
    const waiting = page.getByRole('row', { name: 'Order' }).getByRole('cell').nth(1)
    let created = 0
    let is_over = false
    const load = (async () => {
      while (!is_over) {
        created++
        await engine.create({ conv_id: order_id, data: { created } })
        await nextTurn()
      }
    })()
    try {
      for (let changes = 0; changes < 4; changes++) {
        const seen = await waiting.innerText()
        await waiting.filter({ hasNotText: new RegExp(`^${seen}$`) }).waitFor()
      }
    } finally {
      is_over = true
      await load
    }
    await waiting.filter({ hasText: new RegExp(`^${countText(created)}$`) }).waitFor()
  })

  test('many failed tasks are found, mended and retried, with a count first', async (t) => {
    for (const n of Array(5).keys()) {
      await engine.create({ conv_id: fails_id, ref: `many-${n}`, data: { text: 'seven' } })
    }
    const { page } = await browser.visit(t, console.operator.link('operate'))
    await page
      .getByRole('region', { name: /^Failed tasks/ })
      .getByRole('link')
      .first()
      .click()
    await page.getByRole('heading', { name: 'Tasks' }).waitFor()
    /** Chooses the tasks and does it: the answers before the count, after it and at the end. */
    const doToAll = async (action: string, verb: string, prepare = async () => {}) => {
      await page.getByRole('link', { name: 'many-4' }).waitFor()
      await page.getByRole('checkbox', { name: 'Choose all that are shown' }).check()
      await page.getByRole('button', { name: `${action} …` }).click()
      await prepare()
      const act = page.getByRole('button', { name: `${verb} 5 tasks` })
      await act.waitFor()
      const before = await tasksOf(engine, fails_id, { status: 'failed' })
      assert.deepEqual(
        before.map(({ change_time_ms, create_time_ms }) => change_time_ms === create_time_ms),
        Array(5).fill(action === 'Send data'),
      )
      await act.click()
      await page
        .getByRole('dialog')
        .getByText(/5 (changed|retried)/)
        .waitFor()
      await page.getByRole('dialog').getByRole('button', { name: 'Close' }).last().click()
    }
    await doToAll('Send data', 'Send data to', async () => {
      await page.getByLabel('Data to add, as JSON').fill('{"text": "7"}')
      await page.getByRole('button', { name: 'Count them' }).click()
    })
    await doToAll('Retry', 'Retry')
    await page.getByText('There is no such task.').waitFor()
    assert.equal((await engine.processes.show(fails_id)).tasks, 0)
  })

  test('a file of CSV becomes tasks, and what a search finds becomes a file', async (t) => {
    const { page } = await browser.visit(t, console.operator.link('operate'))
    await page.getByRole('link', { name: 'Tasks', exact: true }).first().click()
    await page.getByLabel('Process').selectOption(String(order_id))
    await page.getByRole('button', { name: 'Search', exact: true }).click()
    const chooser = page.waitForEvent('filechooser')
    await page.getByRole('button', { name: 'Create tasks from CSV…' }).click()
    const body = 'ref,n\ncsv-1,1.10\ncsv-2,zwei\n'
    const file = { name: 'orders.csv', mimeType: 'text/csv', buffer: Buffer.from(body) }
    await (await chooser).setFiles(file)
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Column that is the ref').fill('ref')
    await dialog.getByLabel('Columns of numbers').fill('n')
    await dialog.getByRole('button', { name: 'Create' }).click()
    await dialog.getByText('1 task created, 1 refused.').waitFor()
    await dialog.getByText('Line 3: n: "zwei" is no number').waitFor()
    await dialog.getByRole('button', { name: 'Done' }).click()
    await page.getByRole('link', { name: 'csv-1' }).waitFor()
    const download = page.waitForEvent('download')
    await page.getByRole('button', { name: 'All that it finds as CSV' }).click()
    const saved = await download
    assert.match(saved.url(), /\/csv\?id=\d+$/)
    const text = readFileSync(await saved.path(), 'utf8')
    assert.match(text, /,csv-1,.*"\{""ref"":""csv-1"",""n"":1\.10\}"\r\n/)
  })

  /** [the session's right, a call, and its answer] */
  const rows: readonly (readonly [Right, CallName, object, number])[] = [
    ['look', 'tasks', {}, 200],
    ['look', 'retry', { conv_id: '77', obj_id: no_task }, 403],
    ['look', 'bulk', { action: 'cancel', filter: {} }, 403],
    ['operate', 'retry', { conv_id: '77', obj_id: no_task }, 200],
    ['operate', 'pause', { conv_id: '77' }, 403],
    ['administer', 'pause', { conv_id: '77' }, 200],
  ]
  for (const right of rights) {
    test(`what a session may that may ${right}`, async (t) => {
      await engine.create({ conv_id: order_id, data: {} })
      const { page } = await browser.visit(t, console.operator.link(right))
      await page.getByRole('link', { name: 'Order' }).waitFor()
      assert.equal(await page.getByText('read only').count(), right === 'look' ? 1 : 0)
      const { token } = await (await page.request.get(console.at('session'))).json()
      for (const [of, name, data, status] of rows) {
        if (of !== right) continue
        const headers = { origin: console.operator.url, [token_header]: token }
        const answer = await page.request.post(console.at(`api/${name}`), { data, headers })
        assert.equal(answer.status(), status, `${name}: ${await answer.text()}`)
      }
      await page.getByRole('link', { name: 'Tasks' }).click()
      await page.getByRole('table', { name: 'Tasks' }).getByRole('link').first().waitFor()
      const choices = await page.getByRole('checkbox').count()
      assert.equal(choices > 0, right !== 'look')
      await engine.processes.resume(fails_id)
    })
  }
})
