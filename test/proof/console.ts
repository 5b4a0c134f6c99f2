/**
 * What the operator's page costs and how quick it is, by `npm run proof:console -- [SECONDS] [TASKS]`.
 * Prints figures, judges nothing:
 *
 * - the size of the page, and its first paint with 500 processes;
 * - how long it takes to open a node with TASKS tasks, a million by default;
 * - a load of 20,000 ops a second, and of as many as go: with nothing open, with a reader of the
 *   live stream that shows nothing, and with the page, in turn, for SECONDS each; and the frames a
 *   second of the page meanwhile.
 *
 * The engine is a process of its own. On two cores it shares them with Chromium, as it does not
 * with the browser of an operator; so the engine's processor time for each op is told as well.
 */
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { get, type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { chromium, type Page } from 'playwright-core'
import { type Child, startChild } from '../bench/child.ts'
import { summaryOf } from '../bench/statistics.ts'
import { codePath, top } from '../support/package-folder.ts'
import type { EngineCalls } from './console-engine.ts'

const processes = 500
const paints = 7
const openings = 7
const rounds = 3
const viewport = { width: 1280, height: 800 }
const ids = { loaded_id: '1', large_id: '2' }
const wanted_rate = 20_000
const [seconds = '10', tasks = '1000000'] = process.argv.slice(2)
const slot_ms = Number(seconds) * 1_000

const folder = mkdtempSync(join(tmpdir(), 'conveyor-console-'))
const script = codePath('test/proof/console-engine')
const engine: Child<EngineCalls> = startChild(script, ['--import', 'tsx'])
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium' })
try {
  await engine.call('open', folder, ids)
  await engine.call('putProcesses', processes)
  printSize()
  await printPaint()
  await emitOpening(Number(tasks))
  for (const rate_max of [wanted_rate, undefined]) await printLoad(rate_max)
} finally {
  await browser.close()
  await engine.stop()
  rmSync(folder, { recursive: true })
}

function printSize(): void {
  const sizes = ['page.js', 'page.css', 'icon.svg'].map((name) => {
    const bytes = readFileSync(join(top, 'src/console/page/built', name))
    return [bytes.length, gzipSync(bytes, { level: 9 }).length] as const
  })
  const sum = (at: 0 | 1): number => sizes.reduce((total, size) => total + size[at], 0) / 1_000
  print(`size: ${sum(0).toFixed(1)} kB, ${sum(1).toFixed(1)} kB gzipped`)
}

/** From the start of the navigation, of somebody who is signed in, with nothing in the cache. */
async function printPaint(): Promise<void> {
  const page = await signedIn()
  const state = await page.context().storageState()
  const first: number[] = []
  const whole: number[] = []
  for (let n = 0; n < paints; n++) {
    const context = await browser.newContext({ storageState: state, viewport })
    const visit = await context.newPage()
    await visit.addInitScript(note_shown('main a[href*="/process/"]'))
    await visit.goto(page.url())
    whole.push(await shownAt(visit))
    first.push(Number(await visit.evaluate(`performance.getEntriesByType('paint')[0].startTime`)))
    await context.close()
  }
  await page.context().close()
  print(`first paint with ${processes} processes: ${textOf(first)} ms after the navigation`)
  print(`first paint of the processes: ${textOf(whole)} ms`)
}

/** From the click on the node in its process to the rows of its tasks. */
async function emitOpening(count: number): Promise<void> {
  await engine.call('fill', count)
  const first = await signedIn()
  const ms: number[] = []
  for (let n = 0; n < openings; n++) {
    // Of its own, for a page that is loaded again opens the node that was open.
    const page = await first.context().newPage()
    await page.goto(`${first.url()}process/${ids.large_id}`)
    const node = page.locator('[data-node=wait]')
    await node.waitFor()
    await page.evaluate(`clicked = new Promise((resolve) => {
      addEventListener('click', () => resolve(performance.now()), { capture: true, once: true })
    }); ${note_shown('.node-panel a[href*="/task/"]')}; 0`)
    await node.click()
    ms.push((await shownAt(page)) - Number(await page.evaluate('clicked')))
    await page.close()
  }
  await first.context().close()
  print(`a node with ${count} tasks: ${textOf(ms)} ms from the click to its tasks`)
}

interface Watcher {
  readonly name: string
  /** Begins to watch; what it returns ends that. */
  begin(): Promise<() => Promise<void>>
}

async function printLoad(rate_max: number | undefined): Promise<void> {
  const frames: number[] = []
  const pageAt = (path: string) => async () => {
    const page = await signedIn()
    await page.goto(page.url() + path)
    await page.locator('h1').waitFor()
    const counted = page.evaluate(frames_in(slot_ms - 500))
    return async () => {
      frames.push(Number(await counted))
      await page.context().close()
    }
  }
  const watchers: readonly Watcher[] = [
    { name: 'nothing', begin: async () => async () => {} },
    { name: 'a reader of the stream', begin: readStream },
    { name: 'a page at the overview', begin: pageAt('') },
    { name: 'a page at the process', begin: pageAt(`process/${ids.loaded_id}`) },
  ]
  const slots = watchers.map(() => [] as { readonly rate: number; readonly cpu_us: number }[])
  await engine.call('load', 3_000, rate_max)
  for (let round = 0; round < rounds; round++) {
    for (const at of watchers.keys()) {
      const which = (at + round) % watchers.length
      const stop = await (watchers[which] as Watcher).begin()
      slots[which]?.push(await engine.call('load', slot_ms, rate_max))
      await stop()
    }
  }
  print(rate_max === undefined ? 'as many ops as go:' : `${rate_max} ops a second:`)
  for (const [at, { name }] of watchers.entries()) {
    const against = (of: 'rate' | 'cpu_us'): string => {
      const ratios = slots[at]?.map((slot, n) => slot[of] / (slots[0]?.[n]?.[of] as number)) ?? []
      const { median } = summaryOf(ratios)
      return `${((median - 1) * 100).toFixed(1)} %`
    }
    const rates = slots[at]?.map(({ rate }) => rate) ?? []
    const costs = slots[at]?.map(({ cpu_us }) => cpu_us) ?? []
    print(
      `  with ${name}: ${textOf(rates)} ops/s (${against('rate')}), ` +
        `${textOf(costs, 1)} us of the engine's processor time an op (${against('cpu_us')})`,
    )
  }
  print(`  frames a second of the pages: ${textOf(frames, 1)}`)
}

/** Signs in as the page does, and reads what comes without looking at it. */
async function readStream(): Promise<() => Promise<void>> {
  const link = new URL(await engine.call('link'))
  const base = link.origin + link.pathname.replace(/\/$/, '')
  const response = await fetch(`${base}/api/sign_in`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Origin: link.origin },
    body: JSON.stringify({ link: link.hash.replace('#link=', '') }),
  })
  const [cookie = ''] = response.headers.getSetCookie()[0]?.split(';') ?? []
  const request = get(`${base}/live?view=overview`, { headers: { cookie } })
  const [stream] = (await once(request, 'response')) as [IncomingMessage]
  if (stream.statusCode !== 200) throw new Error(`the stream is answered ${stream.statusCode}`)
  stream.resume()
  return async () => void request.destroy()
}

async function signedIn(): Promise<Page> {
  const context = await browser.newContext({ viewport })
  const page = await context.newPage()
  await page.goto(await engine.call('link'))
  await page.locator('h1').waitFor()
  return page
}

/** Code for the page: notes when something of this selector was painted. */
function note_shown(selector: string): string {
  return `shown = new Promise((resolve) => {
    const look = () => {
      if (document.querySelector(${JSON.stringify(selector)}) === null) return
      observer.disconnect()
      requestAnimationFrame(() => setTimeout(() => resolve(performance.now())))
    }
    const observer = new MutationObserver(look)
    observer.observe(document, { childList: true, subtree: true })
    look()
  })`
}

async function shownAt(page: Page): Promise<number> {
  return Number(await page.evaluate('shown'))
}

/** Code for the page: frames a second. */
function frames_in(ms: number): string {
  return `new Promise((resolve) => {
    const began = performance.now()
    let frames = 0
    const next = (now) => {
      if (now - began > ${ms}) resolve(frames * 1_000 / (now - began))
      else frames++, requestAnimationFrame(next)
    }
    requestAnimationFrame(next)
  })`
}

/** The median, and the least and most. */
function textOf(values: readonly number[], digits = 0): string {
  const { median, min, max } = summaryOf([...values])
  return `${median.toFixed(digits)} (${min.toFixed(digits)} … ${max.toFixed(digits)})`
}

function print(line: string): void {
  console.log(line)
}
