/**
 * The body of a form, `application/x-www-form-urlencoded`, as data (wire 1.11): each name is a
 * string member, and a name that is repeated is an array of its strings, in their order. It is read
 * strictly: a bad escape is a mistake, not text, so that no two programs read it differently.
 */
import { isUtf8 } from 'node:buffer'
import { fault } from '../core/faults.ts'
import type { Doc } from '../core/model.ts'
import { docOfText } from './json.ts'

/** Throws `format_error` for a bad escape, for text that is not UTF-8, or for too many values. */
export function docOfForm(body: Buffer, values_max: number): Doc {
  if (!isUtf8(body)) throw fault('format_error', 'it is not UTF-8')
  const text = body.toString('utf8')
  const members = new Map<string, string[]>()
  let values = 0
  for (let from = 0; from < text.length; ) {
    const ampersand = text.indexOf('&', from)
    const to = ampersand === -1 ? text.length : ampersand
    if (to > from) {
      if (++values > values_max) throw fault('format_error', `over ${values_max} values`)
      const [name, value] = readPair(text.slice(from, to))
      const known = members.get(name)
      if (known === undefined) members.set(name, [value])
      else known.push(value)
    }
    from = to + 1
  }
  const printed = [...members].map(
    ([name, values]) =>
      `${JSON.stringify(name)}:${JSON.stringify(values.length === 1 ? values[0] : values)}`,
  )
  return docOfText(`{${printed.join()}}`)
}

function readPair(pair: string): [name: string, value: string] {
  const equals = pair.indexOf('=')
  if (equals === -1) return [readText(pair), '']
  return [readText(pair.slice(0, equals)), readText(pair.slice(equals + 1))]
}

function readText(written: string): string {
  try {
    return decodeURIComponent(written.replaceAll('+', ' '))
  } catch {
    throw fault('format_error', `bad escape in ${JSON.stringify(written.slice(0, 64))}`)
  }
}
