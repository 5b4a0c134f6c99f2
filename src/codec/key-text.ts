/**
 * A key as operators read it: its type and its parts, such as `task 5cf67011094bab1b9a00a31d` or
 * `ref "order-1" of 1234`. Takes any bytes, also those of a damaged file.
 */
import { type Key, type KeyType, refOfKey, taskOfKey, typeOfKey } from './keys.ts'

const shown_max = 60
const of_tasks: ReadonlySet<KeyType> = new Set([
  'task',
  'at_node',
  'due',
  'ended',
  'failed',
  'outbox',
  'queue',
  'slot',
] as const)

export function keyText(key: Key): string {
  const type = typeOfKey(key)
  if (type === undefined) return `key ${plain(key)}`
  try {
    if (type === 'ref') {
      const { conv, ref } = refOfKey(key)
      return `ref "${plain(ref)}" of ${plain(conv)}`
    }
  } catch {
    // As bytes, below.
  }
  return of_tasks.has(type) ? `${type} ${taskOfKey(key)}` : `${type} ${plain(key.slice(1))}`
}

function plain(bytes: string): string {
  return bytes
    .slice(0, shown_max)
    .replaceAll(/[^\x20-\x7e]+/g, ' ')
    .trim()
}
