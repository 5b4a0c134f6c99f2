/**
 * The secrets to compare with a credential, in equal time for every caller: every owner, even an
 * unknown one, has as many as the owner with the most, filled up with stand-ins.
 */
export interface Secret {
  readonly n: number
  readonly plain: string
  readonly until_ms: number | undefined
}

export type SecretLists = ReadonlyMap<string, readonly string[]>

export interface SecretsToCompare {
  readonly of: SecretLists
  /** Valid from this time on. */
  readonly from_ms: number
  readonly until_ms: number
}

// No id equals one of these. Positions in a map affect time, so there are ten; and an identical
// object is found faster, so the texts are separate objects.
const nobodies = Array.from({ length: 10 }, (_, n) => `0000${n}`)
const absents = Array.from({ length: 10 }, (_, n) => `0001${n}`)
const keys = nobodies.map((nobody) => Buffer.from(nobody).toString('latin1'))

/** The entries whose owner passes, and all stand-ins. */
export function secretsOfThose(
  lists: SecretLists,
  passes: (owner: string) => boolean,
): SecretLists {
  return new Map([...lists].filter(([owner]) => keys.includes(owner) || passes(owner)))
}

/** Always finds one owner and misses one. */
export function secretsIn(lists: SecretLists, owner: string): readonly string[] {
  const found = lists.get(owner)
  const digit = (owner.charCodeAt(owner.length - 1) || 0) % 10
  const other = lists.get((found === undefined ? nobodies : absents)[digit] as string)
  return (found ?? other) as readonly string[]
}

export function secretsToCompare(
  kept: ReadonlyMap<string, readonly Secret[]>,
  now_ms: number,
  stand_in: string,
): SecretsToCompare {
  let [most, until_ms] = [1, Number.POSITIVE_INFINITY]
  for (const secrets of kept.values()) {
    const valid = validAt(secrets, now_ms)
    most = Math.max(most, valid.length)
    for (const one of valid) until_ms = Math.min(until_ms, one.until_ms ?? until_ms)
  }
  const stand_ins = Array<string>(most).fill(stand_in)
  const of = new Map<string, readonly string[]>(keys.map((key) => [key, stand_ins]))
  for (const [owner, secrets] of kept) {
    const plain = validAt(secrets, now_ms).map((one) => one.plain)
    of.set(owner, [...plain, ...stand_ins.slice(plain.length)])
  }
  return { of, from_ms: now_ms, until_ms }
}

export function holdsAt({ from_ms, until_ms }: SecretsToCompare, now_ms: number): boolean {
  return from_ms <= now_ms && now_ms < until_ms
}

export function validAt(secrets: readonly Secret[], now_ms: number): Secret[] {
  return secrets.filter((one) => one.until_ms === undefined || one.until_ms > now_ms)
}
