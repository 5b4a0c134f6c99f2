/**
 * `npm run site [-- FOLDER]`: writes the documentation site into `dist/site` or FOLDER. It is plain
 * files that any server of files serves; the search runs in the browser over `search.json`.
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, posix, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Page, pagesOf } from './site-pages.ts'

const top = fileURLToPath(new URL('..', import.meta.url))
const out = resolve(process.argv[2] ?? join(top, 'dist/site'))
const pages = pagesOf(top)

rmSync(out, { recursive: true, force: true })
for (const page of pages) write(page.path, frameOf(page))
const [first] = pages as [Page]
write('index.html', frameOf({ ...first, path: 'index.html' }))
write('search.json', JSON.stringify(pages.map(({ path, title, text }) => ({ path, title, text }))))
write('search.js', searchScript())
console.log(`${out}: ${pages.length} pages`)

function write(path: string, text: string): void {
  mkdirSync(dirname(join(out, path)), { recursive: true })
  writeFileSync(join(out, path), text)
}

function frameOf({ path, title, html }: Page): string {
  const root = posix.relative(dirname(path), '.') || '.'
  const links = [
    ['index.html', 'Start'],
    ['src/process/README.html', 'Processes'],
    ['src/cli/README.html', 'Command line'],
    ['src/examples/README.html', 'Examples'],
    ['src/core/faults.html', 'Errors'],
  ]
  const nav = links.map(([to, name]) => `<a href="${root}/${to}">${name}</a>`).join(' ')
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${title.replaceAll('<', '&lt;')} · Conveyor</title>
<style>
body { max-width: 60rem; margin: 1rem auto; padding: 0 1rem; font: 16px/1.5 system-ui, sans-serif }
pre, code { font-family: ui-monospace, monospace; font-size: 14px; background: #f4f4f4 }
pre { padding: 0.75rem; overflow: auto } table { border-collapse: collapse }
td, th { border: 1px solid #ccc; padding: 0.25rem 0.5rem; text-align: left; vertical-align: top }
nav a { margin-right: 1rem }
</style>
<nav>${nav} <input id="search" type="search" placeholder="Search" aria-label="Search"></nav>
<ul id="found" aria-live="polite"></ul>
<main>${html}</main>
<script type="module" data-root="${root}" id="script" src="${root}/search.js"></script>
`
}

/** Pages that have every word, those with it in the title first. */
function searchScript(): string {
  return `const { root } = document.getElementById('script').dataset
const [input, found] = ['search', 'found'].map((id) => document.getElementById(id))
let pages
input.addEventListener('input', async () => {
  pages ??= await (await fetch(root + '/search.json')).json()
  const words = input.value.toLowerCase().split(/\\s+/).filter(Boolean)
  const has = (text) => words.every((word) => text.toLowerCase().includes(word))
  const hits = words.length === 0 ? [] : pages.filter(({ title, text }) => has(title + ' ' + text))
  hits.sort((one, other) => has(other.title) - has(one.title))
  found.replaceChildren(...hits.slice(0, 20).map(({ path, title }) => {
    const link = Object.assign(document.createElement('a'), { href: root + '/' + path })
    link.textContent = title + ' (' + path + ')'
    const item = document.createElement('li')
    item.append(link)
    return item
  }))
})
`
}
