/**
 * XML to the JSON value that stands for it: the members of an element are its attributes (`@name`),
 * its children and, beside either, its text (`#value`); an element that has only text is the text,
 * and children of one name are an array. All values are texts, without the white space around them.
 *
 * Only the five entities of XML are known and a document type is refused, so nothing expands. The
 * parser is stopped at the first mistake, and at the level or the value that is one too many.
 */
import { isUtf8 } from 'node:buffer'
import { SaxesParser, type SaxesTagPlain } from 'saxes'
import { fault } from '../core/faults.ts'
import type { Doc, JsonObject, JsonValue } from '../core/model.ts'
import { docOfValue, type JsonBounds, setMember } from './json.ts'

/** The body of a request as data (wire 1.11). Throws `format_error`. */
export function docOfXml(body: Buffer, bounds: JsonBounds): Doc {
  if (!isUtf8(body)) throw fault('format_error', 'it is not UTF-8')
  const read = readXml(body.toString('utf8'), bounds)
  if ('mistake' in read) throw fault('format_error', `it is no XML: ${read.mistake}`)
  return docOfValue(read.value)
}

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
