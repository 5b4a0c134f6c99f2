/**
 * Addresses of the operator's page: a shared link, a reload and the way back show the same node,
 * filter and times, and no address has a ref or data.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { givenOf, queryOf } from '../src/console/page/address.ts'
import type { Engine } from '../src/index.ts'
import { no_browser, testBrowser } from './support/browser.ts'
import { callback_process, failing_process } from './support/cli-process.ts'
import { openConsole, type TestConsole } from './support/console-server.ts'

const since = '2026-01-31T08:05'
const since_ms = new Date(since).getTime()

/** [what a view is opened with, its query, what a reader of the link gets] */
const rows: readonly (readonly [unknown, string, object | null])[] = [
  [null, '', null],
  [{}, '', null],
  [{ node_id: 'a b&c' }, '?node_id=a+b%26c', { node_id: 'a b&c' }],
  [
    { conv_id: '7', node_id: '', status: 'failed', name: 'secret-ref', where: [{ path: 'card' }] },
    '?conv_id=7&status=failed',
    { conv_id: '7', status: 'failed' },
  ],
  [
    { created_since: since, due_before: 'soon', newest_first: false },
    `?created_since=${since_ms}&order=oldest`,
    { created_since: since, newest_first: false },
  ],
  [{ text: 'typed', sorting: { key: 'failed' } }, '', null],
]
for (const [what, query, given] of rows) {
  test(`the address of ${JSON.stringify(what)}`, () => {
    assert.equal(queryOf(what), query)
    assert.deepEqual(givenOf(query), given)
  })
}

for (const query of ['?created_since=soon', '?created_since=1e99', '?order=up', '?other=1', '?%']) {
  test(`a link with ${query} opens without it`, () => assert.equal(givenOf(query), null))
}

const browser = testBrowser()

describe('a link', { skip: no_browser ?? false }, () => {
  let console: TestConsole
  let engine: Engine
  before(async () => {
    console = await openConsole()
    ;({ engine } = console)
    await engine.processes.put(callback_process)
    await engine.processes.put(failing_process)
    await engine.create({ conv_id: failing_process.obj_id, ref: 'bad-ref', data: { text: 'x' } })
    await engine.create({ conv_id: callback_process.obj_id, ref: 'good-ref', data: {} })
  })
  after(() => console?.close())

  test('to a failed group, to a node and to a search shows the same to another reader', async (t) => {
    const { page } = await browser.visit(t, console.operator.link('look'))
    await page
      .getByRole('region', { name: /^Failed tasks/ })
      .getByRole('link')
      .nth(1)
      .click()
    await page.getByRole('link', { name: 'bad-ref' }).waitFor()
    const group = page.url()
    assert.match(group, /\/tasks\?conv_id=\d+&node_id=[^&]+&status=failed$/)

    await page.goto(console.at(`process/${callback_process.obj_id}`))
    await page.locator('[data-node="wait"]').click()
    await page.getByRole('region', { name: 'Node Wait "bank"' }).waitFor()
    const node = page.url()
    assert.match(node, /\?node_id=wait$/)
    await page.reload()
    await page.getByRole('region', { name: 'Node Wait "bank"' }).waitFor()

    const { page: other } = await browser.visit(t, console.operator.link('look'))
    await other.getByRole('table', { name: 'Processes' }).waitFor()
    await other.goto(group)
    await other.getByRole('link', { name: 'bad-ref' }).waitFor()
    assert.equal(await other.getByRole('link', { name: 'good-ref' }).count(), 0)
    assert.equal(await other.getByLabel('Status').inputValue(), 'failed')
    await other.goto(node)
    await other.getByRole('region', { name: 'Node Wait "bank"' }).waitFor()
    await other.goBack()
    await other.getByRole('link', { name: 'bad-ref' }).waitFor()
  })

  test('of a search for a ref or data leaves both out, and says so', async (t) => {
    const { page, requests } = await browser.visit(t, console.operator.link('look'))
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    await page.getByRole('link', { name: 'Tasks', exact: true }).click()
    await page.getByRole('link', { name: 'good-ref' }).waitFor()
    assert.equal(await page.getByText('The link leaves out').count(), 0)
    await page.getByLabel('Ref or id', { exact: true }).fill('good-')
    await page.getByRole('button', { name: 'Search', exact: true }).click()
    await page.getByText('The link leaves out the ref').waitFor()
    await page.getByLabel('Status').selectOption('delayed')
    await page.waitForURL(/status=delayed/)
    await page.getByRole('button', { name: 'Copy link to this search' }).click()
    await page.getByText('Copied').waitFor()
    const link = String(await page.evaluate('navigator.clipboard.readText()'))
    assert.equal(link, console.at('tasks?status=delayed'))
    // A reload keeps both, without an address that has them.
    await page.reload()
    await page.getByRole('link', { name: 'good-ref' }).waitFor()
    assert.equal(await page.getByLabel('Ref or id', { exact: true }).inputValue(), 'good-')
    assert.deepEqual(
      requests.filter((url) => url.includes('good-')),
      [],
    )
  })
})
