/**
 * Where a secret may come from: a file, the environment, or standard input where that is free.
 * Never an argument, which every user of the machine can read.
 */
import { usage } from './exit-codes.ts'
import { decodeText, readInput } from './input.ts'
import type { Io } from './io.ts'
import { type Flag, type Given, text } from './verb.ts'

export const secret_flag: Flag = {
  name: 'secret-file',
  value: 'FILE',
  says: 'the file that holds the secret',
}

export const secret_notes = [
  'The secret is read from --secret-file, else from CONVEYOR_SECRET, else from standard input',
  'where FILE names the body.',
]

/** Throws a usage fault where there is none. `stdin_is_free`: the body does not come from there. */
export async function readSecret(given: Given, io: Io, stdin_is_free: boolean): Promise<string> {
  const file = text(given, 'secret-file')
  const { CONVEYOR_SECRET: from_env } = given.env
  if (file === undefined && from_env !== undefined && from_env !== '') return from_env
  if (file === undefined && !stdin_is_free) {
    throw usage('no secret: set CONVEYOR_SECRET or name a --secret-file')
  }
  const source = file ?? '-'
  const secret = decodeText(await readInput(source, io), 'the secret').trim()
  if (secret === '')
    throw usage(`the secret of ${source === '-' ? 'standard input' : source} is empty`)
  return secret
}
