/** What callers of a cluster need before they come: their process, and a user who may use it. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { list_id, list_process } from './list-process.ts'

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
