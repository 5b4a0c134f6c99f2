/**
 * What a cluster needs before its nodes start, the schema; and what its callers need before they
 * come: their process, and a user who may use it.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { initCluster } from '../../../src/cluster/database/schema.ts'
import { operatorConnection } from '../../../src/cluster/operator/commands.ts'
import { systemChance } from '../../../src/core/clock.ts'
import { list_id, list_process } from './list-process.ts'

/** Makes the schema in the database that `url` names. */
export async function makeSchema(url: string): Promise<void> {
  const connection = operatorConnection(url, 'init')
  const ids = { id: systemChance.bytes(16), log_id: systemChance.bytes(8) }
  try {
    await initCluster(connection, { ...ids, partition: 0 })
  } finally {
    await connection.close()
  }
}

export interface Access {
  readonly user: string
  readonly secret: string
}

/** By the command line, which `run` runs with the words given. `path` is the file of the owner. */
export async function prepare(
  run: (args: readonly string[]) => Promise<string>,
  path: string,
  folder: string,
): Promise<Access> {
  const onOwner = (...args: readonly string[]) => run([...args, '--json', '--db', path])
  const definition = join(folder, 'lists.json')
  writeFileSync(definition, JSON.stringify(list_process))
  await onOwner('process', 'import', definition)
  const { id, secret } = JSON.parse(await onOwner('user', 'add')) as {
    readonly id: string | number
    readonly secret: string
  }
  await onOwner('process', 'share', list_id, String(id))
  return { user: String(id), secret }
}
