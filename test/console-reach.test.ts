/**
 * Who can use the operator's page: each view without serious findings of axe-core, by light and by
 * dark colours, and on a phone, where nothing is wider than the window.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import axe from 'axe-core'
import type { Page } from 'playwright-core'
import { testClock } from '../src/testing.ts'
import { no_browser, testBrowser } from './support/browser.ts'
import { invoice_id, life_handlers, liveHalfHour, putExamples } from './support/console-life.ts'
import { openConsole, type TestConsole } from './support/console-server.ts'

const browser = testBrowser()

/** [what it is, its window and colours] */
const looks = [
  ['light colours', { colorScheme: 'light' }],
  ['dark colours', { colorScheme: 'dark' }],
  ['a phone', { colorScheme: 'light', viewport: { width: 360, height: 740 } }],
] as const

describe('the page is for everybody', { skip: no_browser ?? false }, () => {
  let console: TestConsole
  let failed_id: string
  before(async () => {
    const clock = testClock(Date.now() - 1_800_000)
    console = await openConsole({ clock, handlers: life_handlers })
    await putExamples(console.engine)
    await liveHalfHour(console.engine, clock)
    const filter = { conv_id: invoice_id, status: 'failed', limit: 1 } as const
    const { tasks } = await console.engine.tasks.list(filter)
    failed_id = tasks[0]?.obj_id as string
  })
  after(() => console?.close())

  const press = (page: Page, name: string) =>
    page.getByRole('button', { name, exact: true }).click()
  /** [a view, its path, what is opened there] */
  const views: readonly (readonly [string, () => string, (page: Page) => Promise<unknown>])[] = [
    ['the overview', () => '', (page) => page.getByRole('row', { name: 'Invoice' }).waitFor()],
    [
      'a process and one of its nodes',
      () => `process/${invoice_id}`,
      (page) =>
        page
          .getByRole('button', { name: /^Price it set/ })
          .first()
          .click(),
    ],
    [
      'tasks of which some are chosen',
      () => 'tasks',
      (page) => page.getByRole('checkbox').nth(1).check(),
    ],
    ['a task that is changed', () => `task/${failed_id}`, (page) => press(page, 'Change …')],
    ['a dialog', () => `task/${failed_id}`, (page) => press(page, 'Copy a call …')],
  ]

  for (const [what, options] of looks) {
    test(what, async (t) => {
      const { page } = await browser.visit(t, console.at(''), options)
      await page.getByRole('heading', { name: 'Sign in to' }).waitFor()
      const found = await findings(page, 'the sign-in')
      await page.goto(console.operator.link('administer'))
      for (const [name, path, open] of views) {
        await page.goto(console.at(path()))
        await open(page)
        found.push(...(await findings(page, name)))
      }
      assert.deepEqual(found, [])
    })
  }
})

interface Finding {
  readonly id: string
  readonly impact: string
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[]
}

/** Serious and critical ones, and what is wider than the window. */
async function findings(page: Page, view: string): Promise<string[]> {
  await page.evaluate(`${axe.source}; undefined`)
  const violations = (await page.evaluate(`axe.run({ resultTypes: ['violations'] })
    .then(({ violations }) => violations)`)) as Finding[]
  const [wide, wanted] = (await page.evaluate(
    '[document.documentElement.scrollWidth, innerWidth]',
  )) as [number, number]
  return [
    ...violations
      .filter(({ impact }) => impact === 'serious' || impact === 'critical')
      .map(({ id, nodes: [node] }) => `${view}: ${id}: ${node?.html} ${node?.failureSummary}`),
    ...(wide > wanted ? [`${view} is ${wide} pixels wide, more than ${wanted}`] : []),
  ]
}
