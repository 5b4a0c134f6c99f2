/**
 * The pages of the documentation site: every README and page of the checkout as HTML, and one page
 * for each error code. Links between pages lead to pages; those to sources are left as text.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { marked } from 'marked'
import { transient_faults } from '../src/client/retry.ts'
import { adminFaults, opFaults, wholeFaults } from '../src/core/faults.ts'

export interface Page {
  /** Where it lies in the site, as `src/process/README.html`. */
  readonly path: string
  readonly title: string
  readonly html: string
  /** What the search looks in. */
  readonly text: string
}

const html_path = (path: string): string => path.replace(/\.md$/, '.html')

/** The files of which the site is made, as paths in the checkout. */
export function sourcesOf(top: string): string[] {
  const inside = ['src', 'proto', 'deploy', 'test'].flatMap((folder) =>
    readdirSync(join(top, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.md'))
      .map((name) => posix.join(folder, name.replaceAll('\\', '/'))),
  )
  return ['README.md', 'SECURITY.md', 'CHANGELOG.md', ...inside.sort()]
}

export function pagesOf(top: string): Page[] {
  const sources = sourcesOf(top)
  const known = new Set(sources)
  return [
    ...sources.map((path) => pageOf(path, readFileSync(join(top, path), 'utf8'), known, top)),
    ...errorPages(),
  ]
}

function pageOf(path: string, source: string, known: Set<string>, top: string): Page {
  const text = source.replaceAll(/<!--[\s\S]*?-->\n?/g, '')
  const title = /^# (.*)/m.exec(text)?.[1] ?? path
  const html = (marked.parse(text) as string)
    .replaceAll(/<h([1-6])>(.*?)<\/h\1>/g, (_, level: string, inner: string) => {
      return `<h${level} id="${anchorOf(inner)}">${inner}</h${level}>`
    })
    .replaceAll(/<a href="([^"]*)">(.*?)<\/a>/gs, (link, target: string, inner: string) => {
      const [file = '', heading] = target.split('#')
      if (file === '' || /^[a-z]+:/.test(file)) return link
      const at = posix.normalize(posix.join(dirname(path), file)).replace(/\/$/, '')
      const page = known.has(at) ? at : known.has(`${at}/README.md`) ? `${at}/README.md` : undefined
      if (page === undefined) {
        if (!existsSync(join(top, at))) throw new Error(`${path} has a link to nothing: ${target}`)
        return inner
      }
      const to = posix.relative(dirname(path), html_path(page))
      return `<a href="${to}${heading === undefined ? '' : `#${heading}`}">${inner}</a>`
    })
    // Pictures are of the page as it looks, and are not part of the site.
    .replaceAll(/<img [^>]*>/g, '')
  return { path: html_path(path), title, html, text }
}

/** As GitHub makes it from the text of a heading. */
function anchorOf(inner: string): string {
  return inner
    .replaceAll(/<[^>]*>|&[a-z0-9#]+;/g, '')
    .toLowerCase()
    .replaceAll(' ', '-')
    .replaceAll(/[^\w-]/g, '')
}

/** What helps by what the client library does: transient_faults. */
const reactions = {
  leave:
    'Try again after a pause, at another address where there is one, as the client library does.',
  doubt: 'Try again after a pause; the client library asks its other addresses meanwhile.',
  stay: 'Try again after a pause at the same address, as the client library does.',
} as const

/** One for each code: what it says, where it comes from, and what helps. */
function errorPages(): Page[] {
  const found = new Map<string, string[]>()
  const add = (code: string, line: string): void => {
    found.set(code, [...(found.get(code) ?? []), line])
  }
  for (const [code, { http, text }] of Object.entries(wholeFaults)) {
    add(code, `Of a whole request: ${text}. HTTP answers it with status ${http}.`)
  }
  for (const [code, { when, grpc }] of Object.entries(opFaults)) {
    add(code, `Of one op: ${when}. The other ops of the request are not touched. gRPC: ${grpc}.`)
  }
  for (const [code, text] of Object.entries(adminFaults)) {
    add(code, `Of an administrative call: ${text}.`)
  }
  const transient: Readonly<Record<string, keyof typeof reactions>> = transient_faults
  return [...found].map(([code, lines]) => {
    const reaction = transient[code]
    const help =
      reaction === undefined
        ? 'The same call is refused again until its cause is gone: the description of the answer has it.'
        : `It passes. ${reactions[reaction]}`
    const text = [`# ${code}`, ...lines, `**What helps.** ${help}`].join('\n\n')
    const html = `${marked.parse(text)}<p><a href="../src/core/faults.html">All codes</a></p>`
    return { path: `errors/${code}.html`, title: code, html, text }
  })
}
