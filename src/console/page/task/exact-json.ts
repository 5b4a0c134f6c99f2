/**
 * JSON text as values without loss: a number keeps its digits, an object is a Map, which keeps the
 * order of its members and names such as `__proto__` or `10`. Of equal names the last wins, as in
 * the engine. All data that the page shows and sends goes through here, because JSON.parse changes
 * numbers. Mistakes in typed text have a position.
 */
export interface ExactNumber {
  readonly number: string
}
export type ExactObject = ReadonlyMap<string, Exact>
export type Exact = null | boolean | string | ExactNumber | readonly Exact[] | ExactObject

const levels_max = 1_000

export interface JsonMistake {
  readonly mistake: string
  readonly at: number
}

export function parseExact(text: string): { readonly value: Exact } | JsonMistake {
  const reader: Reader = { text, at: 0, level: 0 }
  try {
    const value = readValue(reader)
    skipSpace(reader)
    if (reader.at < text.length) throw mistakeAt(reader, 'nothing may follow the value')
    return { value }
  } catch (error) {
    if (error instanceof Error && 'at' in error) {
      return { mistake: error.message, at: Number(error.at) }
    }
    throw error
  }
}

export function parseObject(text: string): { readonly value: ExactObject } | JsonMistake {
  const read = parseExact(text)
  if ('mistake' in read || isExactObject(read.value)) return read as { value: ExactObject }
  return { mistake: 'Data is an object: {"name": value}.', at: 0 }
}

export function isExactObject(value: Exact | undefined): value is ExactObject {
  return typeof value === 'object' && value !== null && 'get' in value
}

export const isList = (value: Exact | undefined): value is readonly Exact[] => Array.isArray(value)

export function exactText(value: Exact): string {
  if (isList(value)) return `[${value.map(exactText).join(',')}]`
  if (!isExactObject(value)) return scalarText(value)
  const members = [...value].map(([name, item]) => `${JSON.stringify(name)}:${exactText(item)}`)
  return `{${members.join(',')}}`
}

/** A list that is this short, or has more values than `lines_max`, is one line. */
const line_chars_max = 60
const lines_max = 100
const margin_chars_max = 40

export function indentedText(value: Exact, margin = ''): string {
  const members = isList(value) ? value : isExactObject(value) ? [...value.values()] : []
  if (members.length === 0) return exactText(value)
  if (!members.some((item) => isList(item) || isExactObject(item))) {
    const text = exactText(value)
    if (isList(value) && (text.length <= line_chars_max || members.length > lines_max)) return text
  }
  const inner = margin.length < margin_chars_max ? `${margin}  ` : margin
  const names = isExactObject(value)
    ? [...value.keys()].map((name) => `${JSON.stringify(name)}: `)
    : []
  const lines = members.map((item, at) => inner + (names[at] ?? '') + indentedText(item, inner))
  const [open, close] = isList(value) ? '[]' : '{}'
  return `${open}\n${lines.join(',\n')}\n${margin}${close}`
}

function scalarText(value: null | boolean | string | ExactNumber): string {
  if (typeof value === 'string') return JSON.stringify(value)
  return value === null || typeof value === 'boolean' ? String(value) : value.number
}

interface Reader {
  readonly text: string
  at: number
  level: number
}

function readValue(reader: Reader): Exact {
  skipSpace(reader)
  const { text, at } = reader
  const first = text[at]
  if (first === '{') return readBetween(reader, '}', new Map<string, Exact>(), readMember)
  if (first === '[') return readBetween(reader, ']', [] as Exact[], readItem)
  if (first === '"') return readString(reader)
  const number = take(reader, number_pattern)
  if (number !== undefined) return { number }
  const word = take(reader, /true|false|null/y)
  if (word !== undefined) return word === 'null' ? null : word === 'true'
  throw mistakeAt(reader, at < text.length ? 'a value was expected' : 'the text ends too early')
}

const number_pattern = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.])/y

function readBetween<T>(
  reader: Reader,
  close: string,
  into: T,
  readOne: (reader: Reader, into: T) => void,
): T {
  if (++reader.level > levels_max) throw mistakeAt(reader, `nested deeper than ${levels_max}`)
  reader.at++
  for (let is_first = true; ; is_first = false) {
    skipSpace(reader)
    if (reader.text[reader.at] === close) break
    if (!is_first) {
      if (reader.text[reader.at] !== ',') throw mistakeAt(reader, `"," or "${close}" was expected`)
      reader.at++
    }
    readOne(reader, into)
  }
  reader.at++
  reader.level--
  return into
}

function readItem(reader: Reader, items: Exact[]): void {
  items.push(readValue(reader))
}

function readMember(reader: Reader, members: Map<string, Exact>): void {
  skipSpace(reader)
  if (reader.text[reader.at] !== '"') throw mistakeAt(reader, 'a name in quotes was expected')
  const name = readString(reader)
  skipSpace(reader)
  if (reader.text[reader.at] !== ':') throw mistakeAt(reader, '":" was expected')
  reader.at++
  members.set(name, readValue(reader))
}

function readString(reader: Reader): string {
  const from = reader.at
  const token = take(reader, /"[^"\\]*(?:\\[\s\S][^"\\]*)*"/y)
  if (token === undefined) throw mistakeAt(reader, 'a text does not end')
  if (!token.includes('\\') && !has_control.test(token)) return token.slice(1, -1)
  try {
    return JSON.parse(token) as string
  } catch {
    reader.at = from
    throw mistakeAt(reader, 'a text has a bad escape, or a line break that should be \\n')
  }
}

const has_control = /[\0-\x1f]/

function take(reader: Reader, pattern: RegExp): string | undefined {
  pattern.lastIndex = reader.at
  const [token] = pattern.exec(reader.text) ?? []
  reader.at += token?.length ?? 0
  return token
}

function skipSpace(reader: Reader): void {
  take(reader, /[ \t\n\r]*/y)
}

function mistakeAt({ text, at }: Reader, what: string): Error {
  const before = text.slice(0, at).split('\n')
  const where = `line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}`
  return Object.assign(new Error(`${where}: ${what}`), { at })
}
