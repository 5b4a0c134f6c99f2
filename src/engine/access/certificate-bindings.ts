/**
 * Bindings of certificate names to users. A name is `uri:…`, `dns:…`, `cn:…`, or `sha256:` with the
 * 64 hex digits of the fingerprint. Removing a binding or its user leaves a refusal, never a wider
 * right; only `bindAll` opens every process again. Unbound names can be refused too: the deny list.
 */
import { certificateKey, certificateOfKey, keysOfType } from '../../codec/keys.ts'
import { type CertificateRecord, decodeRecord, encodeRecord } from '../../codec/records.ts'
import { fault } from '../../core/faults.ts'
import type { Caller } from '../../core/model.ts'
import type { Store, Tx } from '../../store/store.ts'
import { allIn } from '../transactions/scans.ts'

export interface CertificateBindings {
  set(name: string, record: CertificateRecord, also?: (tx: Tx) => void): Promise<void>
  list(): { readonly name: string; readonly record: CertificateRecord }[]
  /** In the transaction that removes the user, replaces its bindings by refusals. */
  refuseAllOf(tx: Tx, user: string): string[]
  /** Applies the refusals of `refuseAllOf` once they are on disk. */
  refused(names: readonly string[]): void
  /** The caller that these names act as; undefined if refused or ambiguous. */
  boundCaller(names: readonly string[], strict: boolean): Caller | undefined
}

const refusal: CertificateRecord = { acts_as: 'nobody' }

export async function openBindings(
  store: Store,
  name_bytes_max: number,
): Promise<CertificateBindings> {
  const known = new Map<string, CertificateRecord>()
  const stored = await store.view((view) =>
    allIn(view, keysOfType('certificate')).map(({ key, value }) => ({
      name: certificateOfKey(key),
      record: decodeRecord<CertificateRecord>(value),
    })),
  )
  for (const { name, record } of stored) known.set(name, record)
  return {
    async set(name, record, also) {
      checkName(name, name_bytes_max)
      await store.update((tx) => {
        also?.(tx)
        tx.put(certificateKey(name), encodeRecord(record))
      })
      known.set(name, record)
    },
    list: () => [...known].map(([name, record]) => ({ name, record })),
    refuseAllOf(tx, user) {
      const names: string[] = []
      for (const { key, value } of allIn(tx, keysOfType('certificate'))) {
        const record = decodeRecord<CertificateRecord>(value)
        if (record.acts_as !== 'user' || record.user !== user) continue
        tx.put(key, encodeRecord(refusal))
        names.push(certificateOfKey(key))
      }
      return names
    },
    refused(names) {
      for (const name of names) known.set(name, refusal)
    },
    boundCaller(names, strict) {
      const records = names.flatMap((name) => known.get(name) ?? [])
      const [first] = records
      if (first === undefined) return strict ? undefined : {}
      const agree = records.every(
        (one) => one.acts_as === first.acts_as && userOf(one) === userOf(first),
      )
      if (!agree || first.acts_as === 'nobody') return undefined
      return first.acts_as === 'user' ? { user: first.user } : {}
    },
  }
}

function userOf(record: CertificateRecord): string | undefined {
  return record.acts_as === 'user' ? record.user : undefined
}

const name_pattern = /^(?:(?:uri|dns|cn):[^\p{Cc}]+|sha256:[0-9a-f]{64})$/u

function checkName(name: string, bytes_max: number): void {
  if (name_pattern.test(name) && Buffer.byteLength(name) <= bytes_max) return
  const forms = 'uri:…, dns:…, cn:… or sha256:<64 hex digits>'
  throw fault('not_possible', `a certificate name is ${forms}, at most ${bytes_max} bytes`)
}
