/** The names of users, as answers show them. */
import { userKey } from '../codec/keys.ts'
import { decodeRecord, type UserRecord } from '../codec/records.ts'
import { type Act, noObject } from './act.ts'

/** Empty for a user who is gone. */
export function userName({ tx }: Act, user: string): string {
  const bytes = tx.store.get(userKey(user))
  return bytes === undefined ? '' : decodeRecord<UserRecord>(bytes).name
}

export function requireUser({ tx }: Act, user: string): void {
  if (tx.store.get(userKey(user)) === undefined) throw noObject('user', user)
}
