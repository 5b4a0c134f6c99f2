/**
 * Mistakes and warnings of definitions as answers have them: by node, each with the member that it
 * is about, and no more than fit.
 */
import { bytesOf } from '../codec/json.ts'
import type { Mistake } from '../core/faults.ts'

/** Of an answer, which is kept for a repeat in 64 KiB. */
const texts_max = 100
const text_chars_max = 200
const texts_bytes_max = 20_000

/** What is in no node stands under its process, or else under `other`. */
export function byNode(other: string, found: readonly Mistake[]): Record<string, string[]> {
  const texts = new Map<string, string[]>()
  let bytes = 0
  let count = 0
  for (const { conv_id = other, node_id = conv_id, text } of found.slice(0, texts_max)) {
    const message = messageOf(text)
    bytes += bytesOf(node_id) + bytesOf(JSON.stringify(message))
    if (bytes > texts_bytes_max) break
    texts.set(node_id, [...(texts.get(node_id) ?? []), message])
    count++
  }
  if (count < found.length) {
    texts.set(other, [...(texts.get(other) ?? []), `and ${found.length - count} more`])
  }
  return Object.fromEntries(texts)
}

const place = /^nodes\[\d+\](?: "(?:[^"\\]|\\.)*")?: /
const member_names = new Set(
  [
    'id obj_type title options condition logics semaphors type to_node_id err_node_id esc_node_id',
    'conditions param const fun cast extra extra_type conv_id ref data data_type mode node_id',
    'order_by src lang url method format raw_body content_type max_threads response value stub',
    'res_data res_data_type query instance_id retry group params secret password api_secret_outer',
  ].flatMap((line) => line.split(' ')),
)

/** The sentence of an import, after the member that it is about. */
function messageOf(text: string): string {
  const sentence = text.replace(place, '').slice(0, text_chars_max)
  const words = sentence.split(/[^a-z_]+/)
  const member = words.find((word) => member_names.has(word)) ?? 'logics'
  return `Key '${member}'. '${sentence}'`
}
