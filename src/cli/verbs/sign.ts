/**
 * `sign`: prints a signed request, each step of its signatures (`--explain`), or why a signature
 * that another program made is not the right one (`--check`). The secret is never printed, but for
 * that of the test vector.
 */
import { type Signer, signed, wholeSeconds } from '../../client/http-messages.ts'
import { timestampMistake } from '../../server/http/credentials.ts'
import { type Exit, exits, usageError } from '../exit-codes.ts'
import { type Io, readInput } from '../io.ts'
import { printDone } from '../output.ts'
import { curlLine, explained, explainText, testVector } from '../sign/explain.ts'
import { type FoundSignature, findSignature, usualMistakes } from '../sign/mistakes.ts'
import {
  baseOf,
  body_note,
  fileOf,
  readSecret,
  readSigner,
  secret_notes,
  signer_flags,
} from '../sign/signer.ts'
import { linesText } from '../text.ts'
import { flag, type Given, isOn, text, verbOf } from '../verb.ts'

export const signVerb = verbOf('sign [FILE]', {
  flags: [
    ...signer_flags,
    flag('timestamp T', 'sign with this one, in place of now', { no_env: true }),
    flag('explain', 'print each step; without --user of a test vector', { no_env: true }),
    flag(
      'check SIGNATURE',
      'say what is wrong with a signature made elsewhere, or with the path of its request',
      { no_env: true },
    ),
  ],
  says: 'print the signed URL of a body and a curl line',
  notes: [
    body_note,
    ...secret_notes,
    '--check takes the --timestamp that was sent; a path has it. Exit: 0 where the signature is',
    'right, 1 where it is not: then the mistake is named, if it is a usual one.',
  ],
  async run(given, io) {
    const check = text(given, 'check')
    if (check !== undefined) return checkSignature(given, io, check)
    if (isOn(given, 'explain')) return explain(given, io)
    const base = baseOf(given)
    const file = fileOf(given)
    const { signer, body } = await readSigner(given, io, file)
    const { path, headers } = signed(1, signer, wholeSeconds(timeOf(given, io)), body)
    const url = base + path
    const curl = curlLine({ url, headers, body: `@${file}` })
    const has_headers = Object.keys(headers).length > 0
    const json = JSON.stringify({ url, ...(has_headers ? { headers } : {}), curl })
    return printDone(given, io, json, linesText([url, curl]))
  },
})

/** The time to sign with, in milliseconds. Throws a usage fault. */
function timeOf(given: Given, io: Io): number {
  const timestamp = text(given, 'timestamp')
  if (timestamp === undefined) return io.clock.now_ms()
  if (/^[1-9][0-9]{0,9}$/.test(timestamp)) return Number(timestamp) * 1_000
  throw usageError(`--timestamp: ${timestampMistake(timestamp) ?? 'name whole seconds'}`)
}

async function explain(given: Given, io: Io): Promise<Exit> {
  const is_vector = text(given, 'user') === undefined && given.words.length === 0
  const base = baseOf(given, 'http://127.0.0.1:8080')
  const file = fileOf(given)
  const made = is_vector
    ? explained({ ...testVector, base, file: undefined })
    : explained({ ...(await partsOf(given, io, file)), base, file })
  return printDone(given, io, made, explainText(made))
}

async function partsOf(
  given: Given,
  io: Io,
  file: string,
): Promise<{ readonly signer: Signer; readonly timestamp: string; readonly body: Buffer }> {
  const { signer, body } = await readSigner(given, io, file)
  return { signer, body, timestamp: String(Math.floor(timeOf(given, io) / 1_000)) }
}

const window_s = 300

async function checkSignature(given: Given, io: Io, check: string): Promise<Exit> {
  const [, in_path, of_path] = /\/json\/[^/]+\/([^/]+)\/([^/?]+)/.exec(check) ?? inQuery(check)
  const timestamp = in_path ?? text(given, 'timestamp')
  if (timestamp === undefined) throw usageError('--check needs the --timestamp that was sent')
  const file = fileOf(given)
  const parts = {
    timestamp,
    secret: await readSecret(given, io, file),
    body: await readInput(file, io),
  }
  const mistake = timestampMistake(timestamp)
  const form = mistake === undefined ? [] : [`timestamp: ${mistake}`]
  const found = findSignature(of_path ?? check, parts)
  const off_s = Math.round(io.clock.now_ms() / 1_000 - Number(timestamp))
  const is_right = mistake === undefined && found?.mistakes.length === 0
  const lines = [...form, ...verdictOf(found)]
  if (is_right && Math.abs(off_s) > window_s) {
    const how = `${Math.abs(off_s)} s ${off_s > 0 ? 'ago' : 'ahead'}`
    lines.push(`its time is ${how}: beyond the window of ${window_s} s it is stale_timestamp`)
  }
  const tried = found === undefined ? usualMistakes(parts) : []
  const json = JSON.stringify({
    right: is_right,
    kind: found?.kind ?? null,
    mistakes: [...form, ...(found?.mistakes ?? [])],
    tried,
  })
  const said = [...lines, ...tried.map((says) => `  not: ${says}`)]
  await printDone(given, io, json, linesText(said))
  return is_right ? exits.done : exits.refused
}

/** The time and signature in the query of an address, behind the address itself. */
function inQuery(address: string): readonly (string | undefined)[] {
  const query = new URLSearchParams(address.slice(address.indexOf('?') + 1))
  const signature = query.get('conv_signature') ?? undefined
  return [address, query.get('conv_time') ?? undefined, signature]
}

function placeOf(kind: FoundSignature['kind']): string {
  if (kind === 'hmac') return 'in headers'
  if (kind === 'path') return 'in the path'
  return `in the path by ${kind.slice('path:'.length)}, which \`user sign ID ${kind}\` allows`
}

function verdictOf(found: FoundSignature | undefined): string[] {
  if (found === undefined) {
    return ['no usual mistake leads to this signature: compare the secret, the body and each step']
  }
  const place = placeOf(found.kind)
  if (found.mistakes.length === 0) return [`right, as a signature ${place}`]
  return [`wrong, as a signature ${place}:`, ...found.mistakes.map((says) => `  ${says}`)]
}
