/**
 * Numbers that keep their text. A NumberToken exists only for a token that its double would not
 * print again; every other number is a plain double, so equal values have one form.
 */
import type { NumberToken } from '../core/model.ts'

const prototype = {
  toJSON(this: NumberToken): string {
    return `\ud800${this.token}`
  },
}

/** `token` must be a valid JSON number. */
export function numberToken(token: string): number | NumberToken {
  const double = Number(token)
  if (String(double) === token) return double
  const made = Object.create(prototype) as { token: string }
  made.token = token
  return made as NumberToken
}

export function isNumberToken(value: unknown): value is NumberToken {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === prototype
}
