/**
 * What `send` and `sign` read: the user, the body and the secret. A secret is never an argument,
 * because every user of the machine can read those.
 */
import { type Signer, serverBase } from '../../client/http-messages.ts'
import { usageError } from '../exit-codes.ts'
import { decodeText, type Io, readInput } from '../io.ts'
import { type Flag, flag, type Given, json_flag, oneOf, text } from '../verb.ts'

export const signer_flags: readonly Flag[] = [
  flag('url URL', 'where the server is, such as http://127.0.0.1:8080'),
  flag('user ID', 'the user who signs'),
  flag('secret-file FILE', 'the file that holds the secret'),
  flag('sign HOW', 'path (default) or hmac: in the path or in headers'),
  json_flag,
]

export const secret_notes = [
  'The secret is read from --secret-file, else from CONVEYOR_SECRET, else from standard input',
  'where FILE names the body.',
]

export const body_note = 'FILE holds the body; without it, or as -, standard input does.'

export const fileOf = (given: Given): string => given.words[0] ?? '-'

/** The server's address and base path. Throws a usage fault without one. */
export function baseOf(given: Given, otherwise = ''): string {
  const base = serverBase(text(given, 'url') ?? otherwise)
  if (base !== undefined) return base
  throw usageError('--url takes the address of the server, such as http://127.0.0.1:8080')
}

export async function readSigner(
  given: Given,
  io: Io,
  file: string,
): Promise<{ readonly signer: Signer; readonly body: Buffer }> {
  const user = text(given, 'user')
  if (user === undefined || !/^[1-9][0-9]{0,15}$/.test(user)) {
    throw usageError('--user takes the number of the user who signs')
  }
  const sign = oneOf('--sign', text(given, 'sign') ?? 'path', ['path', 'hmac']) ?? 'path'
  return {
    signer: { user, sign, secret: await readSecret(given, io, file) },
    body: await readInput(file, io),
  }
}

/** Throws a usage fault without a secret, or if standard input is the body. */
export async function readSecret(given: Given, io: Io, body_file: string): Promise<string> {
  const file = text(given, 'secret-file')
  const { CONVEYOR_SECRET: from_env } = given.env
  if (file === undefined && from_env !== undefined && from_env !== '') return from_env
  if (file === undefined && body_file === '-') {
    throw usageError('no secret: set CONVEYOR_SECRET or name a --secret-file')
  }
  const source = file ?? '-'
  const secret = decodeText(await readInput(source, io), 'the secret').trim()
  if (secret === '')
    throw usageError(`the secret of ${source === '-' ? 'standard input' : source} is empty`)
  return secret
}
