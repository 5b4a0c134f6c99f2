/**
 * A body of `multipart/form-data`, read strictly, and the text of it that the service's own
 * clients sign in place of the bytes: without its boundaries and most of its line ends. That text
 * stands for the body only where no other body has it.
 */
import { fault } from '../core/faults.ts'

export interface FormPart {
  readonly name: string
  /** Its lines before the value. */
  readonly head: string
  readonly value: Buffer
}

const parts_max = 100
const head_bytes_max = 1_000

/** The boundary that a content type names; undefined for another type. */
export function boundaryOf(content_type: string | undefined): string | undefined {
  const [, quoted, plain] =
    /^multipart\/form-data\s*;.*?\bboundary=(?:"([\w'()+,./:=? -]{1,70})"|([\w'+.-]{1,70}))/i.exec(
      content_type ?? '',
    ) ?? []
  return quoted ?? plain
}

/** Throws `format_error` for a body that is cut off, or is none of a form. */
export function partsOf(body: Buffer, boundary: string): FormPart[] {
  const parts: FormPart[] = []
  const opening = `--${boundary}`
  const between = Buffer.from(`\r\n${opening}`)
  let at = body.indexOf(opening)
  if (at !== 0) throw malformed('it does not begin with its boundary')
  at += opening.length
  while (body.toString('latin1', at, at + 2) === '\r\n') {
    if (parts.length === parts_max) throw malformed(`over ${parts_max} parts`)
    const head_end = body.indexOf('\r\n\r\n', at)
    if (head_end === -1 || head_end - at > head_bytes_max) throw malformed('a part has no end')
    const end = body.indexOf(between, head_end + 2)
    if (end === -1) throw malformed('it is cut off')
    const head = body.toString('utf8', at + 2, head_end)
    const name = nameIn(head)
    const from = Math.min(head_end + 4, end)
    if (parts.some((one) => one.name === name)) throw malformed('two parts have one name')
    parts.push({ name, head, value: body.subarray(from, end) })
    at = end + between.length
  }
  if (body.toString('latin1', at, at + 2) !== '--') throw malformed('it is cut off')
  return parts
}

const malformed = (what: string): Error => fault('format_error', `no form: ${what}`)

function nameIn(head: string): string {
  const [, name] = /^content-disposition:[^\r\n]*;\s*name="([^"\r\n]*)"/im.exec(head) ?? []
  if (name === undefined) throw malformed('a part has no name')
  return name
}

/**
 * What a client of the service signs; undefined where another form has the same text. Each
 * disposition in the text begins a part, and a value has nothing that a client would cut out. The
 * time is linear, for it runs before a signature is known to be right.
 */
export function signedText(body: Buffer, boundary: string): Buffer | undefined {
  if (!/^-*\w+-*$/.test(boundary)) return undefined
  let parts: FormPart[]
  try {
    parts = partsOf(body, boundary)
  } catch {
    return undefined
  }
  const pieces: string[] = []
  for (const [at, { name, head, value }] of parts.entries()) {
    const text = value.toString('latin1')
    const is_last = at === parts.length - 1
    const cut = is_last ? text.slice(0, endOf(text)) : text
    if (!isClearHead(head) || isUnclear(text) || (cut !== text && name !== 'scheme'))
      return undefined
    // The end of a type such as octet-stream looks like a boundary.
    pieces.push(Buffer.from(head.replace(/-\w+$/, '')).toString('latin1'), '\r\n', cut)
  }
  return Buffer.from(pieces.join(''), 'latin1')
}

function isClearHead(head: string): boolean {
  const [first = '', type = 'Content-Type: a/b', more] = head.split('\r\n')
  const is_first = /^Content-Disposition: form-data; name="[^"]*"(?:; filename="[^"]*")?$/.test(
    first,
  )
  const is_type = /^Content-Type: [\w/;= .-]*\w$/.test(type)
  return is_first && is_type && more === undefined && first.lastIndexOf('Content-') === 0
}

/** Without the white space at the end, of ASCII alone: the text is bytes. */
function endOf(text: string): number {
  let end = text.length
  while (end > 0 && /[\t-\r ]/.test(text[end - 1] as string)) end--
  return end
}

function isUnclear(value: string): boolean {
  const is_cut = value.startsWith('-') || value.endsWith('-') || /-\w*$/.test(value)
  const is_head = value.startsWith('Content-') || value.includes('Content-Disposition')
  return is_cut || is_head || value.includes('\r\n')
}
