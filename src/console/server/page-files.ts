/**
 * The page as a browser loads it: one HTML text for every path, and the built files. They need no
 * session; a browser keeps the files and revalidates them by ETag. The headers allow only what this
 * server sends to run, to be drawn or to be fetched.
 */

import { hash } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { httpFault } from '../../server/http/fault-response.ts'

/** Of every answer below the base. */
export const console_headers = {
  'Cache-Control': 'no-store',
  'Content-Security-Policy': [
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:",
    "connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
  ].join('; '),
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
} as const

const types: Readonly<Record<string, string>> = {
  'page.js': 'text/javascript; charset=utf-8',
  'page.css': 'text/css; charset=utf-8',
  'icon.svg': 'image/svg+xml',
}

interface BuiltFile {
  readonly changed_ms: number
  readonly etag: string
  readonly plain: Buffer
  readonly zipped: Buffer
}

const built_folder = new URL('../page/built/', import.meta.url)

export function newPageFiles(base: string, folder: URL = built_folder) {
  const html = Buffer.from(pageText(base))
  const known = new Map<string, BuiltFile>()

  async function read(name: string): Promise<BuiltFile> {
    const file = new URL(name, folder)
    const { mtimeMs: changed_ms } = await stat(file).catch(refuseUnbuilt)
    const before = known.get(name)
    if (before?.changed_ms === changed_ms) return before
    const plain = await readFile(file)
    const zipped = await promisify(gzip)(plain)
    const read = { changed_ms, etag: `"${hash('sha256', plain).slice(0, 32)}"`, plain, zipped }
    known.set(name, read)
    return read
  }

  return {
    has: (name: string) => Object.hasOwn(types, name),
    /** Both reject with a fault that says what to do where the page was not built. */
    async sendPage(request: IncomingMessage, response: ServerResponse): Promise<void> {
      await read('page.js')
      response.writeHead(200, {
        ...{ ...console_headers, 'Content-Type': 'text/html; charset=utf-8' },
        'Content-Length': html.length,
      })
      response.end(request.method === 'HEAD' ? undefined : html)
    },
    async send(name: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
      const { etag, plain, zipped } = await read(name)
      const kept = { ...console_headers, 'Cache-Control': 'no-cache', ETag: etag }
      if (request.headers['if-none-match'] === etag) {
        response.writeHead(304, kept).end()
        return
      }
      const is_zipped = /\bgzip\b/.test(String(request.headers['accept-encoding'] ?? ''))
      response.writeHead(200, {
        ...kept,
        ...{ 'Content-Type': types[name], Vary: 'Accept-Encoding' },
        ...(is_zipped && { 'Content-Encoding': 'gzip' }),
        'Content-Length': (is_zipped ? zipped : plain).length,
      })
      response.end(request.method === 'HEAD' ? undefined : is_zipped ? zipped : plain)
    },
  }
}

function refuseUnbuilt(cause: unknown): never {
  const text = 'the page is not built: `npm run page` builds it'
  throw Object.assign(httpFault('not_found', text), { cause })
}

function pageText(base: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Conveyor</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="base" content="${base}">
<link rel="icon" href="${base}/icon.svg">
<link rel="stylesheet" href="${base}/page.css">
<script type="module" src="${base}/page.js"></script>
</head>
<body>
<div id="page"></div>
<noscript>This page needs JavaScript.</noscript>
</body>
</html>
`
}
