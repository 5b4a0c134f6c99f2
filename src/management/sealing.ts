/**
 * Secrets that the ops of a request may store: encrypted before its transaction, in one turn with
 * it, because the key must not change between. What no op has stored is forgotten.
 */
import type { JsonObject } from '../core/model.ts'
import { newNonce } from '../engine/definitions/webhooks.ts'
import type { ServedEngine } from '../engine/served-engine.ts'
import { variableOwner } from '../engine/transactions/variables.ts'
import type { Sealed } from './act.ts'
import type { Row } from './table.ts'

interface Sealing {
  readonly op: JsonObject
  readonly row: Row | undefined
}

/** `submit` gets the secrets by their ops. Rejects with `key_missing`. */
export async function withSealed<Made>(
  { addresses, chance }: Pick<ServedEngine, 'addresses' | 'chance'>,
  ops: readonly Sealing[],
  submit: (sealed: ReadonlyMap<JsonObject, Sealed>) => Promise<Made>,
): Promise<Made> {
  const wanted = ops.flatMap(({ op, row }) => {
    const secret = row?.secretIn?.(op)
    const name = newNonce(chance)
    return secret === undefined ? [] : [{ op, name, owner: variableOwner(name), secret }]
  })
  if (wanted.length === 0) return submit(new Map())
  const stored = new Set<string>()
  const made = await addresses.locks.change(wanted, (given) => {
    const sealed = wanted.map(({ op, name, owner }, at) => {
      const put: Sealed['put'] = (tx) => {
        given[at]?.put(tx)
        stored.add(owner)
      }
      return [op, { name, put }] as const
    })
    return submit(new Map(sealed))
  })
  for (const { owner } of wanted) if (!stored.has(owner)) addresses.locks.onRemovedOf(owner)
  return made
}
