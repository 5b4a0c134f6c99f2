/**
 * Long and turned texts on the operator's page, and graphs that are wide: no row grows with a
 * title, no text turns its direction unseen, and no view is wider than the window.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import type { Engine } from '../src/index.ts'
import { no_browser, testBrowser } from './support/browser.ts'
import { openConsole, type TestConsole } from './support/console-server.ts'

const browser = testBrowser()

const turned = 'abc \u202egpj.exe'
const long = 'A long title '.repeat(770)
const wide = 15

const waits = (to_node_id: string) => ({
  logics: [{ type: 'api_callback' }, { type: 'go', to_node_id }],
  semaphors: [],
})

/** Nodes side by side, as their author placed them. */
const wide_process = {
  ...{ obj_type: 1, obj_id: 1600, title: long, status: 'active', conv_type: 'process', params: [] },
  scheme: {
    nodes: [
      ...Array.from({ length: wide }, (_, at) => ({
        ...{ id: `n${at}`, obj_type: at === 0 ? 1 : 0, x: 300 * at, y: 100 },
        title: at === 1 ? turned : at === 2 ? long : `Step ${at}`,
        condition:
          at === 0
            ? { logics: [{ type: 'go', to_node_id: 'n1' }], semaphors: [] }
            : waits(at === wide - 1 ? 'end' : `n${at + 1}`),
      })),
      { id: 'end', obj_type: 2, title: 'End', x: 300 * wide, y: 100 },
    ],
  },
}

describe('long and turned texts', { skip: no_browser ?? false }, () => {
  let console: TestConsole
  let engine: Engine
  let obj_id: string
  before(async () => {
    console = await openConsole()
    ;({ engine } = console)
    await engine.processes.putMany(JSON.stringify(wide_process))
    obj_id = String((await engine.create({ conv_id: 1600, ref: turned, data: {} })).obj_id)
  })
  after(() => console?.close())

  const widths = [1440, 820, 360]
  for (const width of widths) {
    test(`no view is wider than a window of ${width} pixels`, async (t) => {
      const viewport = { width, height: 900 }
      const { page } = await browser.visit(t, console.operator.link('operate'), { viewport })
      await page.getByRole('table', { name: 'Processes' }).waitFor()
      for (const path of ['', 'tasks', 'process/1600', `task/${obj_id}`]) {
        await page.goto(console.at(path))
        const graph = path.includes('/') ? page.locator('[data-node]') : page.locator('td')
        await graph.first().waitFor()
        const found = await page.evaluate('document.documentElement.scrollWidth')
        assert.ok(Number(found) <= width, `${path} is ${found} pixels wide`)
      }
    })
  }

  test('a row is no higher for a title of 10,000 characters', async (t) => {
    const { page } = await browser.visit(t, console.operator.link('look'))
    const tallest = async (row: string) => {
      await page.locator(row).first().waitFor()
      return Number(
        await page.evaluate(`Math.max(...[...document.querySelectorAll('${row}')]
          .map((one) => one.getBoundingClientRect().height))`),
      )
    }
    const found = { processes: await tallest('tbody tr'), nodes: 0, tasks: 0 }
    await page.goto(console.at('process/1600'))
    found.nodes = await tallest('.process-nodes tbody tr')
    await page.goto(console.at('tasks'))
    found.tasks = await tallest('tbody tr')
    const is_low = Object.values(found).every((height) => height <= 140)
    assert.ok(is_low, JSON.stringify(found))
  })

  test('what turns the direction is shown as an escape', async (t) => {
    const { page } = await browser.visit(t, console.operator.link('look'))
    await page.getByRole('table', { name: 'Processes' }).waitFor()
    const shown = async (path: string, act: (page: Page) => Promise<unknown>) => {
      await page.goto(console.at(path))
      await act(page)
      assert.ok(!(await page.locator('body').innerText()).includes('\u202e'), path)
      assert.ok(!(await page.title()).includes('\u202e'), path)
    }
    const escaped = 'abc \\u202egpj.exe'
    await shown('process/1600', async () => {
      await page.locator('[data-node="n1"]').click()
      await page.getByRole('region', { name: `Node ${escaped}` }).waitFor()
    })
    await shown('tasks', () => page.getByRole('link', { name: escaped }).waitFor())
    await shown(`task/${obj_id}`, () => page.getByRole('heading', { name: escaped }).waitFor())
  })
})
