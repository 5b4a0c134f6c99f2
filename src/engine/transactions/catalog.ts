/**
 * A cache of processes by conv_id. Each transaction reads the process record; a
 * cached process is valid only for the same bytes, so a rolled-back change leaves no stale graph.
 */
import { parseStored } from '../../codec/json.ts'
import { type Key, processKey, versionKey } from '../../codec/keys.ts'
import { decodeRecord, type ProcessRecord } from '../../codec/records.ts'
import { fault } from '../../core/faults.ts'
import { limitTable } from '../../core/limits.ts'
import type { JsonObject } from '../../core/model.ts'
import { compileProcess } from '../../process/compile-process.ts'
import { alias_chars_max } from '../../process/definition-limits.ts'
import type { Graph } from '../../process/graph.ts'
import type { DbCallKinds } from '../../process/logic.ts'
import { isAliasName } from '../../process/values.ts'
import type { View } from '../../store/store.ts'

export interface Process {
  readonly conv_id: string
  readonly record: ProcessRecord
  readonly graph: Graph
}

export interface Catalog {
  find(view: View, conv_id: string): Process | undefined
  /** Graphs about to be stored, to avoid a second compilation. */
  expect(versions: readonly Expected[]): void
}

export interface Expected {
  readonly conv_id: string
  readonly hash: string
  readonly graph: Graph
}

interface Known {
  readonly key: Key
  readonly record_bytes: Buffer
  readonly process: Process
}

/** `db_call` has the kinds of that type, where there are databases. */
export function newCatalog(db_call?: DbCallKinds): Catalog {
  const known = new Map<string, Known>()
  let expected: ReadonlyMap<string, Expected> = new Map()

  function graphOf(view: View, conv_id: string, { hash, version }: ProcessRecord): Graph {
    const ready = expected.get(conv_id)
    if (ready?.hash === hash) return ready.graph
    return compileStored(view, conv_id, version, db_call).graph
  }

  return {
    expect(versions) {
      expected = new Map(versions.map((one) => [one.conv_id, one]))
    },
    find(view, conv_id) {
      const cached = known.get(conv_id)
      const key = cached === undefined ? processKey(conv_id) : cached.key
      const bytes = view.get(key)
      if (bytes === undefined) {
        if (cached !== undefined) known.delete(conv_id)
        return undefined
      }
      if (cached?.record_bytes.equals(bytes)) return cached.process
      const record_bytes = Buffer.from(bytes)
      const record = decodeRecord<ProcessRecord>(record_bytes)
      const same = cached?.process.record.hash === record.hash ? cached.process.graph : undefined
      const graph = same ?? graphOf(view, conv_id, record)
      const process = { conv_id, record, graph }
      known.set(conv_id, { key, record_bytes, process })
      return process
    },
  }
}

/** A stored definition compiles under the widest limits, whatever they are now. */
const widest = {
  node_id_chars_max: limitTable.node_id_chars_max.max,
  conv_id_chars_max: limitTable.conv_id_chars_max.max,
}

/** Throws for a mistake: a stored definition was checked. Its handlers may be missing. */
export function compileStored(
  view: View,
  conv_id: string,
  version: number,
  db_call?: DbCallKinds,
): { readonly graph: Graph; readonly definition: JsonObject } {
  const text = view.get(versionKey(conv_id, version))?.toString('utf8')
  if (text === undefined) throw new Error(`process ${conv_id}: version ${version} is missing`)
  const definition = parseStored(text) as JsonObject
  const { graph, mistakes } = compileProcess(definition, widest, () => true, db_call)
  if (graph === undefined) {
    throw new Error(`process ${conv_id}: the stored definition does not compile: ${mistakes[0]}`)
  }
  return { graph, definition }
}

/** Strips the `@`. Throws `not_possible` for an invalid name. */
export function aliasName(given: string): string {
  const name = given.replace(/^@/, '')
  if (isAliasName(name)) return name
  throw fault('not_possible', `an alias is 1 to ${alias_chars_max} characters`)
}
