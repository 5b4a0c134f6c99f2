/**
 * Debian's Chromium for tests of the operator's page, driven by playwright-core: one browser for a
 * test file, a context for each visit, which shares nothing with others.
 *
 * What goes wrong in a page fails its test: an error of its code or in its console, a violation of
 * its content security policy, a request to another origin. Pages are waited for by what they show,
 * never by time. `CONVEYOR_CHROMIUM` names another program, or is `off`.
 */
import './end-soon.ts'
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, type TestContext } from 'node:test'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'

const { CONVEYOR_CHROMIUM: program = '/usr/bin/chromium' } = process.env

/** Why no test can have a browser here; undefined where one can. */
export const no_browser: string | undefined =
  program === 'off'
    ? 'CONVEYOR_CHROMIUM is off'
    : existsSync(program)
      ? undefined
      : `no browser: ${program} is not on this machine (Debian's package chromium)`

/** Beside the code, as `npm test` makes it. */
const built_page = join(import.meta.dirname, '../../src/console/page/built/page.js')

/** Also on a machine that is busy. */
const shown_ms_max = 60_000

export interface Visit {
  readonly page: Page
  /** The URLs of all requests that were made, and the texts of what went wrong so far. */
  readonly requests: readonly string[]
  /** A test that makes something go wrong takes it out of here. */
  readonly wrong: string[]
}

interface VisitOptions extends BrowserContextOptions {
  /** Requests without an answer are nothing wrong. */
  readonly may_be_away?: boolean
}

export interface TestBrowser {
  /**
   * A new context with a page at `url`, closed with the test, which fails if something went wrong.
   * Its server has to outlive the test, so an `after` of the file or a `describe` closes it.
   */
  visit(t: TestContext, url: string, options?: VisitOptions): Promise<Visit>
}

/** Is called once in a file, or in a `describe`: the browser lives as long. */
export function testBrowser(): TestBrowser {
  let browser: Browser
  before(async () => {
    if (no_browser !== undefined) return
    assert.ok(existsSync(built_page), 'the page is not built: npm run page')
    browser = await chromium.launch({ executablePath: program, timeout: shown_ms_max })
  })
  after(() => browser?.close())
  return {
    async visit(t, url, { may_be_away = false, ...options } = {}) {
      const context = await browser.newContext({
        viewport: { width: 1280, height: 800 },
        ...options,
      })
      context.setDefaultTimeout(shown_ms_max)
      const requests: string[] = []
      const wrong: string[] = []
      const { origin } = new URL(url)
      context.on('request', (request) => {
        requests.push(request.url())
        if (!isOf(origin, request.url())) wrong.push(`a request to ${request.url()}`)
      })
      context.on('weberror', (error) => wrong.push(String(error.error().stack)))
      context.on('console', (message) => {
        // A refusal is an answer, which the page shows; Chromium alone calls it an error.
        const is_fine = (may_be_away ? without_answer : refusal).test(message.text())
        if (message.type() === 'error' && !is_fine) wrong.push(message.text())
      })
      context.on('dialog', (dialog) => {
        wrong.push(`a dialog: ${dialog.message()}`)
        void dialog.dismiss()
      })
      await context.addInitScript(report_violations)
      t.after(async () => {
        await context.close()
        assert.deepEqual(wrong, [])
      })
      const page = await context.newPage()
      await page.goto(url)
      // Whoever goes on before the sign-in is answered has used the link up and is not signed in.
      await page.getByRole('heading').first().waitFor()
      return { page, requests, wrong }
    },
  }
}

/** What Chromium says of a request that was refused, and of one that was refused or not answered. */
const refusal = /^Failed to load resource: the server responded/
const without_answer = /^Failed to load resource: (?:the server responded|net::ERR_)/

/** Runs in the page. */
const report_violations = `addEventListener('securitypolicyviolation', (event) => {
  console.error('against the policy: ' + event.violatedDirective + ' ' + event.blockedURI)
})`

function isOf(origin: string, url: string): boolean {
  return url.startsWith(`${origin}/`) || url.startsWith('data:') || url.startsWith('blob:')
}
