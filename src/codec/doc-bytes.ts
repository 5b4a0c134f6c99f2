/**
 * A data object that comes as bytes of its own, without an envelope. Where it stands as this
 * program would print it, its text is taken as it is; both ways answer alike.
 */
import { isUtf8 } from 'node:buffer'
import { fault } from '../core/faults.ts'
import type { Doc } from '../core/model.ts'
import { dataBounds, docOfText, type JsonBounds, rawJson } from './json.ts'
import { brace_open } from './json-chars.ts'
import { compact } from './json-compact.ts'
import { scanOf, skipValue } from './json-scan.ts'

/** Throws a `format_error` Fault as `rawJson` does, and for bytes that are not UTF-8. */
export function docOfBytes(bytes: Buffer, bounds: JsonBounds): Doc {
  if (!isUtf8(bytes)) throw fault('format_error', 'it is not UTF-8')
  return scanned(bytes, bounds) ?? rawJson(bytes.toString('utf8'), bounds)
}

/** Undefined for what is less common, wrong or over a bound. */
function scanned(bytes: Buffer, bounds: JsonBounds): Doc | undefined {
  if (bytes[0] !== brace_open) return undefined
  const scan = scanOf(bytes, dataBounds(bounds).nesting_max)
  const end = skipValue(scan, 0, 1)
  if (end !== bytes.length || scan.must_parse || scan.values > bounds.values_max) return undefined
  return docOfText(scan.is_compact ? bytes.toString('utf8') : compact(bytes, 0, end))
}
