/**
 * Where the database is: `postgres://user@host1:5432,host2:5432/name?sslmode=verify-full`, the form
 * of libpq. A password is never part of it: it comes from PGPASSWORD or from the file that
 * PGPASSFILE names, which the client package reads.
 */
import type { ClientConfig } from 'pg'
import { fault } from '../core/faults.ts'

export interface Target {
  readonly hosts: readonly string[]
  /** The name of this node. */
  readonly node: string
  /** Settings that lose what was answered are taken as well. */
  readonly unsafe: boolean
  configOf(host: string): ClientConfig
  /** The url, which has no secret. */
  readonly url: string
}

const url_pattern = /^(postgres(?:ql)?:\/\/)(?:([^@/?#]*)@)?([^/?#@]+)(\/[^?#]*)?(\?[^#]*)?$/

/** Throws `not_possible` with a sentence. */
export function targetOf(url: string, node: string, unsafe = false): Target {
  const [, scheme, user = '', hosts, path = '', query = ''] = url_pattern.exec(url) ?? []
  if (scheme === undefined || hosts === undefined) {
    throw fault('not_possible', 'the commit log is named by postgres://USER@HOST:PORT/DATABASE')
  }
  if (user.includes(':')) {
    const text = 'the address of the commit log must not hold a password'
    throw fault('not_possible', `${text}: set PGPASSWORD, or PGPASSFILE to a file with it`)
  }
  const at = user === '' ? '' : `${user}@`
  return {
    hosts: hosts.split(','),
    node,
    unsafe,
    configOf: (host) => ({ connectionString: `${scheme}${at}${host}${path}${query}` }),
    url,
  }
}
