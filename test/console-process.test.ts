/**
 * A process on the operator's page, in a browser: its graph by keyboard, pointer and screen reader,
 * with counts as they change; its versions; and a file that is imported, or refused.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Page } from 'playwright-core'
import { nodesIn } from '../src/console/page/import/nodes.ts'
import { pathOf } from '../src/console/page/task/path.ts'
import type { HistoryWhy } from '../src/core/model.ts'
import type { Engine } from '../src/index.ts'
import { no_browser, testBrowser } from './support/browser.ts'
import { callback_process } from './support/cli-process.ts'
import { openConsole, type TestConsole } from './support/console-server.ts'
import { pick } from './support/pick.ts'

type Entry = readonly [node_id: string, why: HistoryWhy]

/** [a history, how often it was in each node, the edges that it took] */
const paths: readonly (readonly [readonly Entry[], Record<string, number>, readonly string[]])[] = [
  [[], {}, []],
  [[['a', 'create']], { a: 1 }, []],
  [
    [
      ['a', 'create'],
      ['b', 'go'],
      ['b', 'modify'],
      ['c', 'callback'],
    ],
    { a: 1, b: 1, c: 1 },
    ['["a","b"]', '["b","c"]'],
  ],
  // A loop, a timer back to the same node, and a failure that stays where it was.
  [
    [
      ['a', 'create'],
      ['b', 'go'],
      ['a', 'go'],
      ['a', 'timer'],
      ['a', 'fail'],
    ],
    { a: 3, b: 1 },
    ['["a","b"]', '["b","a"]', '["a","a"]'],
  ],
  // Nobody draws an edge for what an operator or an import does.
  [
    [
      ['a', 'create'],
      ['c', 'move'],
      ['d', 'migrate'],
    ],
    { a: 1, c: 1, d: 1 },
    [],
  ],
]

for (const [history, nodes, edges] of paths) {
  test(`the path of ${JSON.stringify(history)}`, () => {
    const path = pathOf(history.map(([node_id, why]) => ({ node_id, why })))
    assert.deepEqual([Object.fromEntries(path.nodes), [...path.edges]], [nodes, edges])
  })
}

/** [the text of a file, the nodes that tasks may be moved to] */
const files: readonly (readonly [string, readonly string[]])[] = [
  [JSON.stringify(callback_process), ['start', 'wait', 'end']],
  [JSON.stringify([callback_process, callback_process]), Array(2).fill(['start', 'wait', 'end'])],
  ['{"scheme": {"nodes": [{"id": 7, "title": {}}]}}', ['7']],
  ['{"scheme": null}', []],
  ['null', []],
  ['PK\u0003\u0004', []],
].map(([text, ids]) => [text as string, (ids as string[]).flat()])

for (const [text, ids] of files) {
  test(`the nodes in a file that begins with ${JSON.stringify(text.slice(0, 20))}`, () => {
    const nodes = nodesIn(text)
    assert.deepEqual(pick(nodes, 'id'), ids)
    assert.ok(nodes.every(({ title }) => typeof title === 'string'))
  })
}

const browser = testBrowser()
const { obj_id: order_id } = callback_process
const big_id = 2000
const big_nodes = 300

/** Larger than a screen, so that most of it is out of sight. */
const big_process = {
  ...callback_process,
  obj_id: big_id,
  title: 'Big',
  scheme: {
    nodes: Array.from({ length: big_nodes }, (_, at) => ({
      id: `n${at}`,
      obj_type: at === 0 ? 1 : at === big_nodes - 1 ? 2 : 0,
      title: `Step ${at}`,
      condition: {
        logics: at === big_nodes - 1 ? [] : [{ type: 'go', to_node_id: `n${at + 1}` }],
        semaphors: [],
      },
    })),
  },
}

/** The order with another wait in place of its own, as a file to choose. */
function orderFile(change: (text: string) => string) {
  const text = change(JSON.stringify(callback_process))
  return { name: 'order.json', mimeType: 'application/json', buffer: Buffer.from(text) }
}

const without_wait = orderFile((text) =>
  text.replaceAll('"wait"', '"late"').replaceAll('Wait \\"bank\\"', 'Wait longer'),
)

describe('a process on the page', { skip: no_browser ?? false }, () => {
  let console: TestConsole
  let engine: Engine
  before(async () => {
    console = await openConsole()
    ;({ engine } = console)
    await engine.processes.put(callback_process)
    await engine.processes.put(big_process)
  })
  after(() => console?.close())

  async function visit(
    t: Parameters<typeof browser.visit>[0],
    conv_id: number,
    right: 'look' | 'administer' = 'look',
  ): Promise<Page> {
    const { page } = await browser.visit(t, console.operator.link(right))
    await page.getByRole('navigation').first().waitFor()
    await page.goto(console.at(`process/${conv_id}`))
    await page.locator('[data-node]').first().waitFor()
    return page
  }

  const boxOf = (page: Page, id: string) => page.locator(`[data-node="${id}"]`)
  const focused = async (page: Page) =>
    (await page.locator(':focus').getAttribute('data-node')) ?? ''

  test('its graph is walked by Tab, and Enter opens a node with its tasks', async (t) => {
    await engine.create({ conv_id: order_id, ref: 'seen', data: {} })
    const page = await visit(t, order_id)
    await page.getByRole('button', { name: /^Wait "bank".*1 waiting$/ }).waitFor()
    await page.getByRole('region', { name: 'Graph of Order' }).focus()
    const walked: string[] = []
    for (let step = 0; step < 3; step++) {
      await page.keyboard.press('Tab')
      walked.push(await focused(page))
    }
    assert.deepEqual(walked, ['start', 'wait', 'end'])
    await boxOf(page, 'wait').focus()
    await page.keyboard.press('Enter')
    const panel = page.getByRole('region', { name: 'Node Wait "bank"' })
    await panel.getByRole('link', { name: 'seen' }).waitFor()
    // What changes is shown where it stands, and in the table.
    await engine.create({ conv_id: order_id, ref: 'second', data: {} })
    await panel.getByRole('link', { name: 'second' }).waitFor()
    await page.getByRole('button', { name: /^Wait "bank".*2 waiting$/ }).waitFor()
    await page.getByRole('row', { name: 'Wait "bank"' }).getByRole('cell', { name: '2' }).waitFor()
    await page.keyboard.press('Escape')
    await panel.waitFor({ state: 'detached' })
    assert.equal(await focused(page), 'wait')
    for (const button of ['Pause…', 'Import…']) {
      assert.equal(await page.getByRole('button', { name: button }).count(), 0)
    }
  })

  test('of a large graph what is in sight is there, and what is looked for comes', async (t) => {
    const page = await visit(t, big_id)
    const frame = page.getByRole('region', { name: 'Graph of Big' })
    const drawn = await page.locator('[data-node]').count()
    assert.ok(drawn < big_nodes / 3, `${drawn} of ${big_nodes} are drawn`)
    await page.getByLabel('Find a node').fill('step 299')
    await page.getByRole('row').getByRole('button', { name: 'Step 299' }).click()
    await boxOf(page, 'n299').waitFor()
    await page.getByRole('region', { name: 'Node Step 299' }).waitFor()
    const seen = await boxOf(page, 'n299').boundingBox()
    const around = await frame.boundingBox()
    assert.ok(seen && around && seen.x > around.x && seen.y > around.y)
    // By keys: all of it, nearer, and along.
    await frame.focus()
    await page.keyboard.press('0')
    // Too far to read: the boxes have no text.
    await page.locator('.far').waitFor()
    assert.equal(await page.locator('.node-title').count(), 0)
    await page.keyboard.press('+')
    await page.keyboard.press('=')
    const percent = page.getByTitle('As large as drawn')
    const near = Number.parseInt(await percent.innerText(), 10)
    await page.keyboard.press('-')
    assert.ok(Number.parseInt(await percent.innerText(), 10) < near)
    await percent.click()
    await frame.focus()
    const top = await frame.evaluate((one) => one.scrollTop)
    await page.keyboard.press('ArrowUp')
    while ((await frame.evaluate((one) => one.scrollTop)) === top) await nextTurn()
    await page.getByRole('button', { name: 'Past the graph' }).focus()
    await page.keyboard.press('Enter')
    await page.keyboard.press('Tab')
    assert.equal(await focused(page), '')
  })

  test('a file with mistakes marks its nodes, and stores nothing', async (t) => {
    const page = await visit(t, order_id, 'administer')
    const bad = orderFile((text) => text.replaceAll('"to_node_id":"end"', '"to_node_id":"gone"'))
    await page.locator('input[type=file]').setInputFiles(bad)
    const dialog = page.getByRole('dialog', { name: 'Import a file' })
    await dialog.getByText('nothing is stored').waitFor()
    await dialog.getByRole('button', { name: 'Wait "bank"' }).click()
    await dialog.waitFor({ state: 'detached' })
    const box = boxOf(page, 'wait')
    assert.match((await box.textContent()) ?? '', /"gone" is no node/)
    assert.match((await box.getAttribute('class')) ?? '', /\bwrong\b/)
    await page.getByRole('button', { name: 'Close' }).click()
    await page.locator('.wrong').waitFor({ state: 'detached' })
    const none = { name: 'a.json', mimeType: 'application/json', buffer: Buffer.from('hello') }
    await page.locator('input[type=file]').setInputFiles(none)
    await dialog.getByText('not JSON').waitFor()
    assert.equal((await engine.processes.show(order_id)).version, 1)
  })

  test('tasks of a node that a file drops are moved, and both versions are compared', async (t) => {
    const page = await visit(t, order_id, 'administer')
    const { tasks } = await engine.processes.show(order_id)
    await page.locator('input[type=file]').setInputFiles(without_wait)
    const dialog = page.getByRole('dialog', { name: 'Import a file' })
    await dialog.getByLabel(/with \d+ tasks/).selectOption('late')
    await dialog.getByRole('button', { name: 'Check again' }).click()
    await dialog.getByText('gets a new version').waitFor()
    assert.equal((await engine.processes.show(order_id)).version, 1)
    await dialog.getByRole('button', { name: 'Import', exact: true }).click()
    await page
      .getByRole('button', { name: new RegExp(`^Wait longer.*${tasks} waiting$`) })
      .waitFor()
    await page.getByRole('button', { name: 'Compare…' }).click()
    const versions = page.getByRole('dialog', { name: 'Two versions' })
    const older = versions.getByRole('region', { name: 'Version 1' })
    await older.getByRole('button', { name: /^Wait "bank".*removed$/ }).waitFor()
    const newer = versions.getByRole('region', { name: 'Version 2' })
    await newer.getByRole('button', { name: /^Wait longer.*added$/ }).waitFor()
    await newer.getByText('+', { exact: true }).first().waitFor()
    await page.keyboard.press('Escape')
    const table = page.getByRole('table', { name: 'Nodes and the tasks in them' })
    assert.equal(await table.getByRole('button', { name: 'Wait "bank"' }).count(), 0)
    await page.getByLabel('Version').selectOption('1')
    await table.getByRole('button', { name: 'Wait "bank"' }).waitFor()
    await page.getByLabel('Version').selectOption('2')
    await page.getByRole('button', { name: 'Pause…' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Pause', exact: true }).click()
    await page.getByRole('button', { name: 'Resume…' }).waitFor()
    assert.equal((await engine.processes.show(order_id)).status, 'paused')
    await engine.processes.resume(order_id)
    await page.getByRole('button', { name: 'Pause…' }).waitFor()
  })
})
