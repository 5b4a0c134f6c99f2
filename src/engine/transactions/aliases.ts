/**
 * Aliases: names of processes that definitions use as `@name` instead of an id. They are stored
 * beside the definitions and looked up when a task runs, so a change takes effect at once and files
 * may be imported in any order. An alias may name a process that is not there; it then leads
 * nowhere. Only definitions use aliases: an op of a caller names its process by id.
 */
import { aliasKey, aliasOfKey, keysOfType } from '../../codec/keys.ts'
import { fault } from '../../core/faults.ts'
import { alias_chars_max } from '../../process/definition-limits.ts'
import { isAliasName } from '../../process/values.ts'
import type { Tx, View } from '../../store/store.ts'
import type { Alias, AliasResult } from '../api/import-api.ts'

/** The id that `@name` stands for in this view. Any other id, and a free name, stays as it is. */
export function convIdOf(view: View, conv_id: string): string {
  if (!conv_id.startsWith('@')) return conv_id
  return view.get(aliasKey(conv_id.slice(1)))?.toString('utf8') ?? conv_id
}

export function listAliases(view: View): Alias[] {
  return view
    .scan({ ...keysOfType('alias'), limit: Infinity })
    .map(({ key, value }) => ({ name: aliasOfKey(key), conv_id: value.toString('utf8') }))
}

export function putAlias(tx: Tx, { name, conv_id }: Alias): AliasResult {
  const old = tx.get(aliasKey(name))?.toString('utf8')
  if (old === conv_id) return { name, conv_id, state: 'unchanged' }
  tx.put(aliasKey(name), Buffer.from(conv_id))
  return { name, conv_id, state: old === undefined ? 'created' : 'updated' }
}

/** The name without its `@`. Throws `not_possible` for one that is no name. */
export function aliasName(given: string): string {
  const name = given.replace(/^@/, '')
  if (isAliasName(name)) return name
  throw fault('not_possible', `an alias is 1 to ${alias_chars_max} characters`)
}
