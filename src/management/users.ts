/** The names of users, as answers show them. */
import { userKey } from '../codec/keys.ts'
import { decodeRecord, type UserRecord } from '../codec/records.ts'
import type { JsonObject } from '../core/model.ts'
import { type Act, idValue, noObject } from './act.ts'

/** Empty for a user who is gone. */
export function userName({ tx }: Act, user: string): string {
  const bytes = tx.store.get(userKey(user))
  return bytes === undefined ? '' : decodeRecord<UserRecord>(bytes).name
}

/** The owner of an object, as lists show it. */
export function ownerOf(act: Act, owner: string | undefined): JsonObject {
  return {
    owner_id: owner === undefined ? null : idValue(owner),
    owner_name: owner === undefined ? '' : userName(act, owner),
    owner_login: owner ?? '',
  }
}

export function requireUser({ tx }: Act, user: string): void {
  if (tx.store.get(userKey(user)) === undefined) throw noObject('user', user)
}
