/**
 * The search through the events of a whole test run: none may have a field that its row in
 * core/events.md does not name, and none a secret, a signature or data. Secrets, signatures and the
 * JSON that data is are known by their form, a single value by `planted`, which tests put into data.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Tests put it into data, secrets and bodies. */
export const planted = 'PLANTED'

const forbidden: readonly (readonly [string, RegExp])[] = [
  ['planted data', new RegExp(planted, 'i')],
  // 32 bytes in base64, as secrets of users are.
  ['a secret', /(?<![\w-])[\w-]{43}=?(?![\w-])/],
  ['a key', /(?<![\da-z:])[\da-f]{64}(?![\da-z])/i],
  ['a signature', /(?<![\da-z:])[\da-f]{40}(?![\da-z])/i],
  ['a certificate', /-----BEGIN/],
  ['a secret of a test', /top secret|s3cret|c2VjcmV0/],
]

const json = /\{\s*("[^"]*"\s*:|\})/

/** The fields of each event, by the table in core/events.md. */
export function documentedFields(markdown: string): ReadonlyMap<string, ReadonlySet<string>> {
  const rows = markdown.matchAll(/^\| `(\w+)` \| (\w+) \| ([^|]*) \|/gm)
  return new Map(
    [...rows].map(([, event = '', , fields = '']) => [
      event,
      new Set([...fields.matchAll(/`(\w+)`/g)].map(([, field = '']) => field)),
    ]),
  )
}

/** What is wrong with these lines, a sentence for each that is. */
export function wrongIn(
  lines: readonly string[],
  documented: ReturnType<typeof documentedFields>,
): string[] {
  const wrong = new Set<string>()
  for (const line of lines) {
    const { event = '', ...fields } = JSON.parse(line) as Record<string, unknown>
    for (const [what, form] of forbidden) if (form.test(line)) wrong.add(`${what}: ${line}`)
    for (const [field, value] of Object.entries(fields)) {
      if (typeof value === 'object' || json.test(String(value))) wrong.add(`JSON: ${line}`)
      if (documented.get(String(event))?.has(field)) continue
      wrong.add(`${event} has the field ${field}, of which core/events.md does not know`)
    }
  }
  return [...wrong]
}

/** The lines that the processes of a run have left in a folder. */
export function keptLines(folder: string): string[] {
  return readdirSync(folder).flatMap((name) =>
    readFileSync(join(folder, name), 'utf8')
      .split('\n')
      .filter((line) => line.endsWith('}')),
  )
}
