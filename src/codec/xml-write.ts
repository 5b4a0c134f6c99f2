/**
 * The XML of a JSON value, the opposite of xml-read: `@name` is an attribute, `#value` the text
 * beside attributes, an array repeats its element, null is an empty one. Any other value is text,
 * escaped, so that no value can change the structure.
 */
import type { JsonObject, JsonValue } from '../core/model.ts'
import { isObject, stringifyJson } from './json.ts'

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
