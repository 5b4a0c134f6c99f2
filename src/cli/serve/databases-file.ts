/**
 * The file of `serve --databases`: a JSON object with the databases that `db_call` nodes may query,
 * by the `instance_id` that they name. It is read once. No message quotes from it, because it may
 * hold a password; files that it names are looked for beside it.
 */
import { readFileSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { isObject, parseJson } from '../../codec/json.ts'
import type { GivenDatabases } from '../../engine/api/database-api.ts'
import { isRangeError, usageError } from '../exit-codes.ts'
import { unreadable } from '../io.ts'
import { type Given, text } from '../verb.ts'

export const databases_flag = {
  name: 'databases',
  value: 'FILE',
  says: 'the databases that db_call nodes may query: a JSON object, by instance_id',
}

/** Undefined without the flag. Rejects with a usage fault for a file that cannot be used. */
export async function databasesOf(given: Given): Promise<GivenDatabases | undefined> {
  const path = text(given, 'databases')
  if (path === undefined) return undefined
  const found = readFile(path)
  const { readDatabases } = await import('../../executors/databases/instances.ts')
  try {
    const databases = readDatabases(found)
    if ([...databases.values()].some(({ driver }) => driver === 'mysql')) checkMysql()
  } catch (error) {
    if (!isRangeError(error)) throw error
    throw usageError(`cannot use ${path}: ${error.message}`)
  }
  return found
}

const file_members = ['password_file', 'ca_file']

function readFile(path: string): GivenDatabases {
  const value = parsed(path)
  if (!isObject(value)) throw usageError(`cannot use ${path}: a JSON object was expected`)
  for (const one of Object.values(value)) {
    if (!isObject(one)) continue
    for (const member of file_members) {
      const named = one[member]
      if (typeof named === 'string') one[member] = resolve(dirname(path), named)
    }
  }
  return value as object as GivenDatabases
}

function parsed(path: string): unknown {
  let read: string
  try {
    if ((statSync(path).mode & 0o007) !== 0) {
      throw usageError('others may read it: chmod 600 it')
    }
    read = readFileSync(path, 'utf8')
  } catch (error) {
    throw unreadable(path, error)
  }
  try {
    return parseJson(read)
  } catch (error) {
    throw usageError(`cannot use ${path}: ${(error as Error).message}`)
  }
}

function checkMysql(): void {
  try {
    import.meta.resolve('mysql2')
  } catch {
    throw new RangeError('the driver mysql is the package mysql2: `npm install mysql2`')
  }
}
