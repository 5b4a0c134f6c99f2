/**
 * The pictures of the operator's page for its README: its views after half an hour in the life of an
 * engine, whose time is given. One visit takes all of them, on the way that an operator would go.
 */
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { testClock } from '../../src/testing.ts'
import { life_handlers, liveHalfHour, putExamples } from './console-life.ts'
import { openConsole, type TestConsole } from './console-server.ts'
import { fakeChance } from './fake-clock.ts'

export const picture_names = ['overview', 'process', 'versions', 'tasks', 'task'] as const
type PictureName = (typeof picture_names)[number]

export const picture_size = { width: 1280, height: 800 }

/** Of the browser: the same everywhere. */
export const picture_look: BrowserContextOptions = {
  ...{ viewport: picture_size, colorScheme: 'light', reducedMotion: 'reduce' },
  ...{ timezoneId: 'UTC', locale: 'en-GB' },
}

const begin_ms = Date.UTC(2026, 2, 2, 9, 30)

export async function openPictured(): Promise<TestConsole> {
  const clock = testClock(begin_ms)
  const console = await openConsole({ clock, chance: fakeChance(), handlers: life_handlers })
  const { engine } = console
  await engine.processes.put(firstPayment())
  await putExamples(engine)
  await liveHalfHour(engine, clock)
  return console
}

/** The page is at the overview. */
export async function takePictures(page: Page, folder: string): Promise<void> {
  mkdirSync(folder, { recursive: true })
  const take = async (name: PictureName): Promise<void> => {
    await page.mouse.move(0, 0)
    await page.screenshot({ path: pathOf(folder, name), scale: 'css', caret: 'hide' })
  }
  const press = (name: string | RegExp) => page.getByRole('button', { name }).first().click()

  const payment = page.getByRole('link', { name: 'Payment', exact: true })
  await payment.waitFor()
  await page
    .getByRole('region', { name: /^Failed tasks/ })
    .getByRole('listitem')
    .first()
    .waitFor()
  await take('overview')

  await payment.click()
  await page.getByRole('region', { name: /^Graph of/ }).waitFor()
  await press(/^Wait for the bank/)
  await page.getByRole('list', { name: 'The oldest tasks in it' }).waitFor()
  await take('process')

  await press('Compare…')
  await page.getByRole('dialog').getByText('Wait for approval').first().waitFor()
  await take('versions')
  await page.keyboard.press('Escape')

  await page.getByRole('link', { name: 'Overview' }).click()
  const failed = page.getByRole('region', { name: /^Failed tasks/ })
  await failed
    .getByRole('link', { name: /Invoice/ })
    .first()
    .click()
  const rows = page.getByRole('table', { name: 'Tasks' }).getByRole('checkbox')
  for (const at of [1, 2, 3]) await rows.nth(at).check()
  await take('tasks')

  await page.getByRole('table', { name: 'Tasks' }).getByRole('link').first().click()
  await page.getByRole('region', { name: 'Its path' }).getByText('Wait for the money').waitFor()
  await take('task')
}

export function pathOf(folder: string, name: PictureName): string {
  return join(folder, `${name}.png`)
}

const large_id = '66a1c0de0000000000000103'
const approval_id = '66a1c0de0000000000000104'
const bank_id = '66a1c0de0000000000000105'

/** The example of a payment as it was before large orders were approved. */
function firstPayment(): object {
  const file = new URL('../../src/examples/payment.conv.json', import.meta.url)
  const text = readFileSync(file, 'utf8').replaceAll('"const": "10000"', '"const": "20000"')
  const payment = JSON.parse(text) as { scheme: { nodes: { id: string }[] } }
  const nodes = payment.scheme.nodes
    .filter(({ id }) => id !== approval_id)
    .map((node) =>
      node.id !== large_id
        ? node
        : JSON.parse(JSON.stringify(node).replaceAll(approval_id, bank_id)),
    )
  return { ...payment, scheme: { ...payment.scheme, nodes } }
}
