/**
 * An upload as a form: its parts are the members of one op, and the file `scheme` is its text, or
 * base64 where it is a zip. Nothing is read of it before its signature has been checked.
 */
import { isUtf8 } from 'node:buffer'
import { boundaryOf, type FormPart, partsOf, signedText } from '../../codec/multipart.ts'
import { httpFault } from './fault-response.ts'

export interface Form {
  /** What may be signed in place of the bytes. */
  signedText(): Buffer | undefined
  /** As a request in JSON. Throws `format_error`. */
  body(): Buffer
}

/** Undefined for a body of another type, which is JSON. */
export function formOf(content_type: string | undefined, sent: Buffer): Form | undefined {
  const boundary = boundaryOf(content_type)
  if (boundary === undefined) return undefined
  return {
    signedText: () => signedText(sent, boundary),
    body() {
      const members = partsOf(sent, boundary).map(
        (part) => `${JSON.stringify(part.name)}:${JSON.stringify(textOf(part))}`,
      )
      return Buffer.from(`{"ops":[{${members.join()}}]}`)
    },
  }
}

function textOf({ name, value }: FormPart): string {
  const is_zip = name === 'scheme' && value.toString('latin1', 0, 2) === 'PK'
  if (is_zip) return value.toString('base64')
  if (isUtf8(value)) return value.toString('utf8')
  throw httpFault('format_error', `no form: ${JSON.stringify(name.slice(0, 40))} is not UTF-8`)
}
