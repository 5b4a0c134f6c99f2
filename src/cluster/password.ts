/**
 * The password of the database: from PGPASSWORD, or from the file that PGPASSFILE names, else
 * `~/.pgpass`, with a line `HOST:PORT:DATABASE:USER:PASSWORD` whose first four may be `*`. It is
 * asked for only by a server that wants one, anew for each connection, and no sentence has it.
 */
import { readFileSync, statSync } from 'node:fs'
import { homedir, userInfo } from 'node:os'
import { join } from 'node:path'
import { env } from 'node:process'
import { type Fault, fault } from '../core/faults.ts'

export interface Login {
  readonly host: string
  readonly port: number
  readonly database: string
  readonly user: string | undefined
}

/** Throws `not_possible` where there is none. */
export function passwordFor(
  { host, port, database, user }: Login,
  variables: Readonly<Record<string, string | undefined>> = env,
): string {
  const { PGPASSWORD, PGPASSFILE, PGUSER } = variables
  if (PGPASSWORD !== undefined && PGPASSWORD !== '') return PGPASSWORD
  const path = PGPASSFILE ?? join(homedir(), '.pgpass')
  const name = host.startsWith('/') ? 'localhost' : host
  const wanted = [name, String(port), database, user ?? PGUSER ?? userInfo().username]
  for (const line of linesOf(path, PGPASSFILE !== undefined)) {
    const [fields, password] = fieldsOf(line)
    if (password === '' || fields.length !== wanted.length) continue
    if (fields.every((field, at) => field === '*' || field === wanted[at])) return password
  }
  throw none(`${path} has no line for ${wanted.slice(0, 3).join(':')} and this user`)
}

function linesOf(path: string, is_named: boolean): string[] {
  try {
    const { mode } = statSync(path)
    if ((mode & 0o077) !== 0) throw none(`others may read ${path}, so it is not used: chmod 600 it`)
    return readFileSync(path, 'utf8').split(/\r?\n/)
  } catch (error) {
    const { code } = error as { code?: string }
    if (code === 'not_possible') throw error
    throw none(is_named ? `${path} cannot be read (${code})` : 'there is none')
  }
}

/** The fields before the password, and the password: what remains; `\` takes the next as it is. */
function fieldsOf(line: string): [fields: string[], password: string] {
  const fields = line.startsWith('#') ? [] : (line.match(/(?:\\.|[^:\\])*(?::|$)/g) ?? [])
  const taken = fields.slice(0, 4)
  const unescaped = (text: string): string => text.replaceAll(/\\(.)/g, '$1')
  const password = unescaped(line.slice(taken.join('').length))
  return [taken.map((field) => unescaped(field.slice(0, -1))), password]
}

function none(text: string): Fault {
  const says = 'the database wants a password'
  return fault('not_possible', `${says}: set PGPASSWORD, or PGPASSFILE to a file with it; ${text}`)
}
