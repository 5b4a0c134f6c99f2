/** The documentation site: each page and each error code is there, and no link leads to nothing. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { after, test } from 'node:test'
import { pagesOf, sourcesOf } from '../bin/site-pages.ts'
import { adminFaults, opFaults, wholeFaults } from '../src/core/faults.ts'
import { run, tempFolder, top } from './support/package-folder.ts'

const pages = pagesOf(top)
const byPath = new Map(pages.map((page) => [page.path, page]))

test('each README and page is a page', () => {
  const sources = sourcesOf(top)
  assert.ok(sources.length > 30)
  for (const path of sources) assert.ok(byPath.has(path.replace(/\.md$/, '.html')), path)
})

test('each code has a page with what it says, why and what helps', () => {
  for (const table of [wholeFaults, opFaults, adminFaults]) {
    for (const code of Object.keys(table)) {
      const { html, text } = byPath.get(`errors/${code}.html`) ?? assert.fail(code)
      assert.match(text, /\n\nOf (a whole request|one op|an administrative call): .{4,}\./)
      assert.match(html, /<strong>What helps\.<\/strong> [A-Z]/)
    }
  }
  assert.match(byPath.get('errors/overloaded.html')?.text ?? '', /It passes\. Try again/)
  assert.match(byPath.get('errors/not_found.html')?.text ?? '', /refused again/)
})

test('each link of a page leads to a page, and to a heading of it', () => {
  let links = 0
  for (const { path, html } of pages) {
    for (const [, target = ''] of html.matchAll(/<a href="([^":]+)"/g)) {
      const [file = '', heading] = target.split('#')
      const to = file === '' ? path : posix.normalize(posix.join(dirname(path), file))
      const page = byPath.get(to) ?? assert.fail(`${path} has ${target}`)
      if (heading !== undefined) {
        assert.ok(page.html.includes(`id="${heading}"`), `${path}: no heading ${target}`)
      }
      links++
    }
  }
  assert.ok(links > 200, `${links} links`)
})

test('the site is written, with its search over all pages', () => {
  const folder = tempFolder()
  after(() => folder.remove())
  const out = join(folder.path, 'site')
  run(top, process.execPath, ['--import', 'tsx', 'bin/site.ts', out])
  const found = JSON.parse(readFileSync(join(out, 'search.json'), 'utf8')) as { path: string }[]
  assert.equal(found.length, pages.length)
  for (const { path } of found) assert.ok(existsSync(join(out, path)), path)
  for (const [path, root] of [
    ['index.html', '.'],
    ['src/cli/README.html', '../..'],
  ] as const) {
    const html = readFileSync(join(out, path), 'utf8')
    assert.ok(html.includes(`src="${root}/search.js"`), path)
  }
})

test('llms.txt names files that the package has', () => {
  const text = readFileSync(join(top, 'llms.txt'), 'utf8')
  const links = Array.from(text.matchAll(/\]\(([^)]+)\)/g), ([, path = '']) => path)
  assert.ok(links.length > 15)
  for (const path of links) {
    assert.ok(existsSync(join(top, path)), path)
    assert.match(path, /^(README|SECURITY)\.md$|^(src|deploy|proto)\//)
  }
})
