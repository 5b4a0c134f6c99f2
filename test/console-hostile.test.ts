/**
 * What others put into processes and tasks is text in the operator's page: no part of it runs, is
 * markup, or makes the page ask another server. Nor does its size or its shape stop the page.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Engine } from '../src/index.ts'
import { no_browser, testBrowser } from './support/browser.ts'
import { openConsole, type TestConsole } from './support/console-server.ts'

const browser = testBrowser()

/** Each would set `ran`, or ask another server. */
const hostile: readonly string[] = [
  '<script>ran = 1</script>',
  '<img src=x onerror="ran = 1">',
  '"><svg onload=ran=1>',
  '</script><script>ran = 1</script>',
  '<iframe srcdoc="<script>parent.ran = 1</script>"></iframe>',
  'javascript:ran=1',
  '<a href="javascript:ran=1">a link</a>',
  '<style>@import "//elsewhere.example/x.css"</style>',
  '<base href="//elsewhere.example/">',
  '{{constructor.constructor("ran = 1")()}}',
  `$\{globalThis.ran = 1}`,
  '\u202egpj.exe\u202c <b>&lt;i&gt;</b>',
]

const [img = ''] = hostile.slice(1)
const conv_id = img

/** A node, a parameter, a condition for each text; tasks fail in the last node. */
const definition = {
  ...{ obj_type: 1, obj_id: conv_id, title: img, description: img, status: 'active' },
  conv_type: 'process',
  params: hostile.map((name) => ({
    ...{ name, type: 'string', descr: name, flags: [], regex: '', regex_error_text: name },
  })),
  scheme: {
    nodes: [
      {
        ...{ id: 'start', obj_type: 1, title: img },
        condition: { logics: [{ type: 'go', to_node_id: hostile[0] }], semaphors: [] },
      },
      ...hostile.map((text, at) => ({
        ...{ id: text, obj_type: 0, title: text, description: text },
        condition: {
          logics: [
            {
              ...{ type: 'go_if_const', to_node_id: hostile[at + 1] ?? 'failing' },
              conditions: [{ param: 'at', const: text, fun: 'not_eq', cast: 'string' }],
            },
            { type: 'api_callback' },
            { type: 'go', to_node_id: hostile[at + 1] ?? 'failing' },
          ],
          semaphors: [],
        },
      })),
      {
        ...{ id: 'failing', obj_type: 0, title: img },
        condition: {
          logics: [
            { type: 'set_param', extra: { [img]: '{{at}}' }, extra_type: { [img]: 'number' } },
            { type: 'go', to_node_id: 'end' },
          ],
          semaphors: [],
        },
      },
      { id: 'end', obj_type: 2, title: img },
    ],
  },
}

describe('hostile content', { skip: no_browser ?? false }, () => {
  let console: TestConsole
  let engine: Engine
  const ids: string[] = []
  before(async () => {
    console = await openConsole({ limits: { nesting_max: 1_000, task_bytes_max: 200_000 } })
    ;({ engine } = console)
    await engine.processes.put(definition)
    const data = Object.fromEntries(hostile.map((text) => [text, text]))
    for (const at of hostile) {
      const { obj_id = '' } = await engine.create({ conv_id, ref: at, data: { ...data, at } })
      ids.push(obj_id)
    }
    const { obj_id = '' } = await engine.create({ conv_id, ref: 'failed', data: { at: 'passes' } })
    ids.push(obj_id)
  })
  after(() => console?.close())

  const of_process = `process/${encodeURIComponent(conv_id)}`
  /** [a view, what stands in it as it is] */
  const views: readonly (readonly [string, () => string, readonly string[]])[] = [
    ['the overview', () => '', [img]],
    ['the process', () => of_process, hostile],
    ['the tasks', () => 'tasks', hostile],
    ['a waiting task', () => `task/${ids[0]}`, hostile],
    ['a failed task', () => `task/${ids.at(-1)}`, [img]],
  ]

  test('is text in each view', async (t) => {
    const { page } = await browser.visit(t, console.operator.link('administer'))
    for (const [name, path, texts] of views) {
      await page.goto(console.at(path()))
      for (const text of texts) {
        // Characters that turn the direction of a text are shown by their numbers in places.
        const seen = text.split('\u202c').at(-1) as string
        await page.getByText(seen).first().waitFor({ state: 'attached' })
      }
      assert.deepEqual(await page.evaluate(what_ran), [], name)
    }
  })

  test('of any size and shape is shown, and can be read on', async (t) => {
    const line = 'A line without an end. '.repeat(5_700)
    const rtl = 'שלום \u202eabc\u202c עולם'
    let deep: unknown = 'the innermost'
    for (let level = 0; level < 990; level++) deep = level % 2 === 0 ? [deep] : { level: deep }
    const result = await engine.create({ conv_id, ref: rtl, data: { at: img, line, deep, rtl } })
    assert.equal(result.proc, 'ok')
    const { page } = await browser.visit(t, console.operator.link('look'))
    await page.goto(console.at(`task/${result.obj_id}`))
    await page.getByRole('button', { name: /^all 131.\d+ characters$/ }).click()
    await page.getByRole('button', { name: 'less' }).click()
    await page.getByRole('searchbox', { name: 'Search in the data' }).fill('innermost')
    await page.getByText('"the innermost"').waitFor()
    await page.getByRole('button', { name: 'JSON', exact: true }).click()
    await page.getByText('the innermost').first().waitFor()
    const wide = await page.evaluate('document.documentElement.scrollWidth > innerWidth')
    assert.equal(wide, false, 'the page is wider than the window')
    await page.goto(console.at('tasks'))
    await page.getByText('עולם').first().waitFor()
    await page.getByRole('row', { name: /עולם/ }).getByText('waiting').waitFor()
  })
})

/** Code for the page: what of the texts has become more than text. */
const what_ran = `[
  ...(globalThis.ran === undefined ? [] : ['it ran']),
  ...[...document.querySelectorAll(
    'script:not([src$="/console/page.js"]), iframe, img, object, embed, base, style, form[action], ' +
    'link:not([href^="/console/"]), [onerror], [onload], [href^="javascript:" i], [style*="url("]',
  )].map((found) => found.outerHTML),
]`
