/**
 * The form of a conformance vector, as it stands in test/vectors/*.json, and its reading.
 *
 * A file is `{ about, vectors: [ … ] }`. A vector says what is there (`given`), what is done and
 * answered (`steps`), and which live tasks are left (`end`). A runner in any language needs:
 *
 *     name, note      for people; names are unique over all files
 *     source, rule    who says so: spec, known (how the public service does) or ours; which of the
 *                     sentences listed in vector-rules.ts
 *     given           now_ms (default 1700000000000) · limits (by name, over the defaults) ·
 *                     processes: definitions, or names out of given/processes.json ·
 *                     users: [{ id, grants: [{ conv_id, can? }] }], default: 13000 with all rights
 *     end             conv_id → its live tasks, oldest first: ref, status, node_id, data, and tag
 *                     where failed. A process that is not named has none
 *
 * A step is one of
 *
 *     { ops | body, results | refused, as?, version? }   one request. `body` is the text itself, or
 *                     a list of texts to join. `as` is a user id (default: the first user given)
 *                     or null for a caller who may see every process. `results` is "ok" where each
 *                     op is merely to succeed, else the ops of the answer in the shape of `version`
 *                     (default 1), equal to the byte. `refused` is { code, description? }
 *     { advance_ms } · { set_clock_ms }   the clock jumps; what is then due fires, in due order
 *     { reopen: true, closed_ms? }   the engine is closed, for so long, and opened on the same file
 *     { admin: [verb, …], result | refused }   administration, on every transport done in the process:
 *                     put definition moves? → { version, state } · pause, resume, remove conv_id ·
 *                     share conv_id user can? · unshare conv_id user · webhook conv_id new|off ·
 *                     cancel task ·
 *                     retry task node_id? → the result of an op in version 1
 *     { post: ["public", conv_id] | ["callback", conv_id, node_id], body, version?, form?, hash?,
 *                     result | refused }   a body to an address, on every transport over HTTP;
 *                     `hash` is a guess, default: the right one; `form` is json (default) or nvp
 *     { damage: task }   one byte of the stored task record is changed while the file is closed
 *     { expect: … }   as `end`, in between
 *
 * and may say `changes`: the refs of the tasks that it, or what became due by it, changed, in
 * order; or `at_once: true`: the next step does not wait until what is due has been done.
 *
 * Numbers count by token: one that a double would not print again is `{ "$number": "1.10" }`, so
 * that no reader or formatter of JSON can change it. The order of members counts in results; in
 * `data` of `end` and `expect` it does not. `$id1`, `$id2`, … stand for task ids: bound where first
 * seen in an answer, the same ever after, different names different ids.
 * `{ "$repeat": x, "times": n }` is a text n times over, or as an element of a list n elements.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { isObject, numberToken, parseJson, setMember } from '../../src/codec/json.ts'
import type { JsonObject, JsonValue } from '../../src/core/model.ts'

export interface Vector extends JsonObject {
  name: string
  source: 'spec' | 'known' | 'ours'
  rule: string[]
  given: JsonObject
  steps: JsonObject[]
  end: JsonObject
}

const folder = new URL('../vectors/', import.meta.url)

/** The vectors by file name, in the order of the files and of the vectors in them. */
export function readVectors(): Map<string, Vector[]> {
  const files = readdirSync(folder).filter((name) => name.endsWith('.json'))
  return new Map(
    files.sort().map((name) => {
      const file = expanded(readJson(name)) as JsonObject
      return [name, (file.vectors as JsonObject[]).map(vectorOf)]
    }),
  )
}

/** The definition of a process as `given.processes` or `put` has it. */
export function definitionOf(given: JsonValue): JsonObject {
  if (isObject(given)) return given
  const found = typeof given === 'string' ? namedProcesses()[given] : undefined
  if (isObject(found)) return found
  throw new Error(`no process ${JSON.stringify(given)} in given/processes.json`)
}

function namedProcesses(): JsonObject {
  named ??= readJson('given/processes.json') as JsonObject
  return named
}
let named: JsonObject | undefined

function readJson(name: string): JsonValue {
  const bounds = { nesting_max: 200, values_max: Number.MAX_SAFE_INTEGER }
  return parseJson(readFileSync(new URL(name, folder), 'utf8'), bounds)
}

function vectorOf(raw: JsonObject): Vector {
  const { name, source, rule, given = {}, steps, end } = raw
  if (typeof name !== 'string' || !isObject(given) || !Array.isArray(steps) || !isObject(end)) {
    throw new Error(`a vector needs name, steps and end: ${JSON.stringify(raw).slice(0, 200)}`)
  }
  if (source !== 'spec' && source !== 'known' && source !== 'ours') {
    throw new Error(`${name}: source is none of spec known ours`)
  }
  const rules = (Array.isArray(rule) ? rule : [rule]) as string[]
  return { ...raw, name, source, rule: rules, given, steps: steps as JsonObject[], end }
}

function expanded(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.flatMap((item) => repeated(item) ?? [expanded(item)])
  if (!isObject(value)) return value
  const { $repeat: text, times, $number: token } = value
  if (typeof token === 'string') return numberToken(token)
  if (typeof text === 'string') return text.repeat(times as number)
  for (const key of Object.keys(value)) setMember(value, key, expanded(value[key] as JsonValue))
  return value
}

function repeated(item: JsonValue): JsonValue[] | undefined {
  if (!isObject(item) || item.$repeat === undefined || typeof item.$repeat === 'string') return
  return Array.from({ length: item.times as number }, () => expanded(item.$repeat as JsonValue))
}
