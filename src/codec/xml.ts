/**
 * The XML of a JSON value, the opposite of xml-read: `@name` is an attribute, `#value` the text
 * beside attributes, an array repeats its element, null is an empty one. Any other value is text,
 * escaped, so that no value can change the structure.
 */

import { SaxesParser, type SaxesTagPlain } from 'saxes'
import type { JsonObject, JsonValue } from '../core/model.ts'
import { isObject, type JsonBounds, setMember, stringifyJson } from './json.ts'

/** Undefined where it is no XML: not one root, or a name or a character that XML does not have. */
export function xmlOf(value: JsonObject): string | undefined {
  const [root, ...more] = Object.keys(value)
  if (root === undefined || more.length > 0 || Array.isArray(value[root])) return undefined
  const element = elementOf(root, value[root] as JsonValue)
  return element && `<?xml version="1.0" encoding="UTF-8"?>${element}`
}

/** Whether a content type says XML: application/xml, text/xml, application/soap+xml, soap/xml. */
export function isXmlType(type: string): boolean {
  return /^[^;]*[/+]xml\s*(?:;|$)/i.test(type)
}

const name_pattern = /^[\p{L}_:][\p{L}\p{N}_:.\-\u{b7}]*$/u

function elementOf(name: string, value: JsonValue): string | undefined {
  if (!name_pattern.test(name)) return undefined
  if (Array.isArray(value)) return joined(value.map((one) => elementOf(name, one)))
  const members = isObject(value) ? value : { '#value': value }
  const keys = Object.keys(members)
  const attributes = joined(
    keys
      .filter((key) => key.startsWith('@'))
      .map((key) => attributeOf(key.slice(1), members[key] as JsonValue)),
  )
  const content = joined(
    keys
      .filter((key) => !key.startsWith('@'))
      .map((key) => {
        const member = members[key] as JsonValue
        return key === '#value' ? escaped(member, /[&<>\r]/g) : elementOf(key, member)
      }),
  )
  if (attributes === undefined || content === undefined) return undefined
  return `<${name}${attributes}>${content}</${name}>`
}

function attributeOf(name: string, value: JsonValue): string | undefined {
  const text = name_pattern.test(name) ? escaped(value, /[&<>"\t\n\r]/g) : undefined
  return text === undefined ? undefined : ` ${name}="${text}"`
}

const no_xml = /[^\t\n\r\x20-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/u

const escapes: Readonly<Record<string, string>> = {
  ...{ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' },
  ...{ '\t': '&#9;', '\n': '&#10;', '\r': '&#13;' },
}

/** `special` is what a reader would take for markup, or would change. */
function escaped(value: JsonValue, special: RegExp): string | undefined {
  const text = typeof value === 'string' ? value : value === null ? '' : stringifyJson(value)
  if (no_xml.test(text)) return undefined
  return text.replace(special, (char) => escapes[char] as string)
}

function joined(pieces: readonly (string | undefined)[]): string | undefined {
  return pieces.includes(undefined) ? undefined : pieces.join('')
}

/**
 * XML to the JSON value that stands for it: the members of an element are its attributes (`@name`),
 * its children and, beside either, its text (`#value`); an element that has only text is the text,
 * and children of one name are an array. All values are texts, without the white space around them.
 *
 * Only the five entities of XML are known and a document type is refused, so nothing expands. The
 * parser is stopped at the first mistake, and at the level or the value that is one too many.
 */
interface Open {
  readonly members: JsonObject
  text: string
}

/** `mistake` says what is wrong and where. */
export function readXml(
  text: string,
  { nesting_max, values_max }: JsonBounds,
): { readonly value: JsonObject } | { readonly mistake: string } {
  const root: JsonObject = {}
  const open: Open[] = [{ members: root, text: '' }]
  let values = 0
  const top = (): Open => open.at(-1) as Open
  const parser = new SaxesParser()
  let mistake: string | undefined
  const stop = (why: string): never => {
    mistake = why
    throw new Error(why)
  }
  parser.on('error', ({ message }) => stop(message))
  parser.on('doctype', () => stop('a document type'))
  const count = (): void => {
    if (++values > values_max) stop(`more than ${values_max} values`)
  }
  parser.on('attribute', count)
  parser.on('opentag', ({ attributes }: SaxesTagPlain) => {
    count()
    if (open.length > nesting_max) stop(`deeper than ${nesting_max}`)
    const members: JsonObject = {}
    for (const name of Object.keys(attributes)) {
      setMember(members, `@${name}`, attributes[name] as string)
    }
    open.push({ members, text: '' })
  })
  const addText = (piece: string): void => {
    top().text += piece
  }
  parser.on('text', addText)
  parser.on('cdata', addText)
  parser.on('closetag', ({ name }: SaxesTagPlain) => {
    const closed = open.pop() as Open
    addMember(top().members, name, elementValue(closed))
  })
  try {
    parser.write(text).close()
    return { value: root }
  } catch (error) {
    if (mistake === undefined) throw error
    return { mistake }
  }
}

function elementValue({ members, text }: Open): JsonValue {
  const trimmed = text.trim()
  if (Object.keys(members).length === 0) return trimmed
  if (trimmed !== '') setMember(members, '#value', trimmed)
  return members
}

/** The second element of a name makes an array of the first. */
function addMember(members: JsonObject, name: string, value: JsonValue): void {
  const before = Object.hasOwn(members, name) ? members[name] : undefined
  if (before === undefined) setMember(members, name, value)
  else if (Array.isArray(before)) before.push(value)
  else setMember(members, name, [before, value])
}
