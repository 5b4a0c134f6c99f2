/**
 * The data file of a node that has stopped, for the verbs that need no engine: `backup` and
 * `check`. It is read under its lock and stays as it is, so that the node can go on with it.
 */
import { realpath } from 'node:fs/promises'
import { keyId, parseKey } from '../codec/encryption.ts'
import { type Fault, fault } from '../core/faults.ts'
import { keyFits } from '../engine/access/encryption-key.ts'
import { readKeyFile } from '../engine/access/encryption-key-file.ts'
import { keyCheckIn } from '../engine/access/secrets.ts'
import { checkStore } from '../engine/file/check.ts'
import type { Admin, AdminArgs } from '../server/admin/verbs.ts'
import { lockFile } from '../store/disk/file-lock.ts'
import { openReadOnly, type ReadOnlyFile } from '../store/read-only.ts'
import { unreachableError } from './exit-codes.ts'

/** Undefined for a file that is no copy of a node, or that another process holds by now. */
export async function stoppedNode(
  path: string,
  secret_key: string | undefined,
): Promise<Admin | undefined> {
  const lock = await lockFile(path)
  if (lock === undefined) return undefined
  const file = await openReadOnly(await realpath(path), { takes_nodes: true }).catch(
    async (error: Fault) => {
      await lock.release()
      throw asUnreachable(error)
    },
  )
  const close = (): Promise<void> => file.close().finally(lock.release)
  const { node } = file
  if (node === undefined) return close().then(() => undefined)
  const key = secret_key === undefined ? readKeyFile(`${path}.key`).key : parseKey(secret_key)
  const is_key = key !== undefined && keyFits(key, keyCheckIn(file) ?? '')
  const run = async (verb: string, args: unknown): Promise<unknown> => {
    if (verb === 'check') return checkStore(readingStore(file), new Set())
    if (verb !== 'backup') throw asUnreachable(node.refusal)
    const { path: target } = args as AdminArgs<'backup'>
    const made = await node.backup(target)
    return { ...made, has: node.says, ...(is_key && { key_id: keyId(key) }) }
  }
  return { call: (verb, args) => run(verb, args) as Promise<never>, close }
}

const asUnreachable = ({ message, code }: Fault): Error => unreachableError(message, code)

/** As a store that never changes. */
export function readingStore(file: ReadOnlyFile): Parameters<typeof checkStore>[0] {
  return {
    view: async (read) => read(file),
    update: () => Promise.reject(fault('not_possible', 'nothing is changed here')),
    damage: file.damage,
  }
}
