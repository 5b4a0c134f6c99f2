/**
 * Hostile requests with their stated answers, over sockets of the HTTP server: framing that proxies
 * read in two ways, JSON that parsers read in two ways, signatures that are nearly right, in the
 * path and in headers. After each a good request is answered. The try at place k is row `seed + k`.
 */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { hostile_rows } from '../support/hostile-rows.ts'
import { buildChild, type Edit } from '../support/store-child.ts'
import type { Given, Outcome, Proof } from './proof.ts'

const all = hostile_rows.length

function control(says: string, edit: Edit): Proof['controls'][number] {
  return { says, quick: all, long: all, run: (given) => tried(given, [edit]) }
}

export const proof: Proof = {
  name: 'vectors',
  says: 'each hostile request gets its stated answer, and the next good one is served',
  unit: 'requests',
  quick: all,
  long: all,
  run: (given) => tried(given, []),
  controls: [
    control('a server that looks at no framing', {
      file: 'server/http/check-head.ts',
      from: '  checkFraming(context.limits, request)\n',
      to: '',
    }),
    control('a parser that takes any encoding', {
      file: 'codec/request-body.ts',
      from: '  checkUtf8(body)\n',
      to: '',
    }),
    control('a server that compares no signature in headers', {
      file: 'server/http/authenticate.ts',
      from: 'if (!isSignedBy(secrets, kind, timestamp, body, signature))',
      to: 'if (kind === "path" && !isSignedBy(secrets, kind, timestamp, body, signature))',
    }),
  ],
}

async function tried({ n, seed }: Given, edits: readonly Edit[]): Promise<Outcome> {
  const child = await buildChild('vectors-child.ts', edits)
  try {
    const { stdout } = await promisify(execFile)(process.execPath, [
      ...[child.script, String(seed % all), String(n)],
    ])
    const lines = stdout.split('\n').filter((line) => line !== '')
    const failures = lines.map((line) => {
      const { at, says } = JSON.parse(line) as { at: number; says: string }
      return { seed: at, says }
    })
    return { tried: n, faults: n, failures }
  } finally {
    await child.remove()
  }
}
