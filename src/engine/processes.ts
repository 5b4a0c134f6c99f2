/**
 * Administration of processes: import, list, show, share, pause, resume, remove.
 *
 * A definition with a mistake is refused whole. Importing never changes the status of a process
 * that exists. A node in which tasks rest is dropped only where the import says where they go; that
 * word stays in the process head until the last of them has been moved.
 */
import { createHash } from 'node:crypto'
import { canonicalText } from '../bytes/canonical.ts'
import { isObject, parseJson, stringifyJson } from '../bytes/json.ts'
import {
  countsOf,
  familySpan,
  grantKey,
  grantOfKey,
  nodeCountKey,
  nodeCountOfKey,
  processKey,
  processOfKey,
  versionKey,
  versionsOf,
} from '../bytes/keys.ts'
import { isName } from '../bytes/op.ts'
import { docOfPlain } from '../bytes/plain.ts'
import {
  decodeCount,
  decodeRecord,
  encodeRecord,
  grant_bits,
  type ProcessHead,
} from '../bytes/records.ts'
import { compileProcess } from '../logic/graph.ts'
import type { Graph } from '../logic/logic.ts'
import type { Store, Tx, View } from '../store/store.ts'
import { fault } from '../words/faults.ts'
import type { Limits } from '../words/limits.ts'
import type { JsonObject } from '../words/model.ts'
import type { ProcessDetails, Processes, ProcessInfo, PutOptions, PutResult } from './api.ts'
import type { Catalog, Process } from './catalog.ts'
import { edgesOf } from './edges.ts'
import { mustExist, readCan, userId } from './users.ts'
import { moveOf } from './waiting.ts'

export interface ProcessesPort {
  readonly store: Store
  readonly catalog: Catalog
  readonly limits: Limits
  /** A process may have something due, or nodes to empty, that it had not before. */
  noteProcess(conv_id: string): void
}

export interface ProcessAdmin extends Processes {
  put(definition: unknown, options?: PutOptions): Promise<PutResult>
}

export function newProcesses({ store, catalog, limits, noteProcess }: ProcessesPort): ProcessAdmin {
  const convId = (given: string | number): string => {
    const conv_id = String(given)
    if (isName(conv_id, limits.conv_id_chars_max)) return conv_id
    throw fault('bad_definition', `a conv_id is 1 to ${limits.conv_id_chars_max} characters`)
  }

  async function setStatus(given: string | number, status: 'active' | 'paused'): Promise<void> {
    const conv_id = convId(given)
    await store.update((tx) => {
      const { head } = mustFind(tx, catalog, conv_id)
      if (head.status !== status) tx.put(processKey(conv_id), encodeRecord({ ...head, status }))
    })
    if (status === 'active') noteProcess(conv_id)
  }

  return {
    async put(definition, options = {}) {
      const value = readDefinition(definition, limits)
      const { graph, mistakes, warnings } = compileProcess(value, limits)
      if (graph === undefined) throw badDefinition(mistakes)
      const given = options.conv_id ?? graph.conv_id
      if (given === undefined) throw badDefinition(['obj_id is missing, and no id was given'])
      const conv_id = convId(given)
      const text = stringifyJson(value)
      const hash = createHash('sha256').update(canonicalText(value)).digest('hex')
      const put = await store.update((tx) =>
        putVersion(tx, catalog, { conv_id, text, hash, graph, moves: options.moves ?? {} }),
      )
      noteProcess(conv_id)
      return { conv_id, ...put, warnings }
    },
    list: () => store.view((view) => listProcesses(view)),
    show: (given) =>
      store.view((view) => showProcess(view, mustFind(view, catalog, convId(given)))),
    async share(given, user, can = ['create', 'modify', 'show']) {
      const conv_id = convId(given)
      const id = userId(user)
      const bits = can.reduce((sum, name) => sum | grant_bits[name], 0)
      await store.update((tx) => {
        mustFind(tx, catalog, conv_id)
        mustExist(tx, id)
        tx.put(grantKey(id, conv_id), Buffer.from([bits]))
      })
    },
    async unshare(given, user) {
      const conv_id = convId(given)
      const id = userId(user)
      await store.update((tx) => {
        mustFind(tx, catalog, conv_id)
        mustExist(tx, id)
        tx.del(grantKey(id, conv_id))
      })
    },
    pause: (given) => setStatus(given, 'paused'),
    resume: (given) => setStatus(given, 'active'),
    async remove(given) {
      const conv_id = convId(given)
      await store.update((tx) => {
        mustFind(tx, catalog, conv_id)
        const tasks = liveTasks(tx, conv_id)
        if (tasks > 0) {
          throw fault(
            'process_has_tasks',
            `process ${conv_id} has ${tasks} live tasks; cancel them`,
          )
        }
        for (const { user } of grantsFor(tx, conv_id)) tx.del(grantKey(user, conv_id))
        for (const { key } of tx.scan({ ...versionsOf(conv_id), limit: Infinity })) tx.del(key)
        tx.del(processKey(conv_id))
      })
    },
  }
}

/** JSON text, or a plain object. */
function readDefinition(definition: unknown, limits: Limits): JsonObject {
  const bounds = { nesting_max: limits.nesting_max, values_max: Number.MAX_SAFE_INTEGER }
  if (typeof definition === 'string') {
    const value = parseJson(definition, bounds)
    if (isObject(value)) return value
  } else if (typeof definition === 'object' && definition !== null && !Array.isArray(definition)) {
    const doc = docOfPlain(definition, limits.nesting_max)
    if (typeof doc === 'string') throw badDefinition([doc])
    return parseJson(doc.text, bounds) as JsonObject
  }
  throw badDefinition(['a definition is one JSON object'])
}

function badDefinition(mistakes: readonly string[]): Error {
  const more = mistakes.length > 1 ? `, and ${mistakes.length - 1} more` : ''
  return fault('bad_definition', `${mistakes[0]}${more}`, { mistakes })
}

interface NewVersion {
  readonly conv_id: string
  readonly text: string
  readonly hash: string
  readonly graph: Graph
  readonly moves: Readonly<Record<string, string>>
}

function putVersion(
  tx: Tx,
  catalog: Catalog,
  next: NewVersion,
): Pick<PutResult, 'version' | 'state'> {
  const { conv_id, hash, graph } = next
  const old = catalog.find(tx, conv_id)
  if (old?.head.hash === hash) return { version: old.head.version, state: 'unchanged' }
  const version = (old?.head.version ?? 0) + 1
  const head: ProcessHead = {
    title: graph.title,
    status: old?.head.status ?? graph.status,
    version,
    hash,
    moves: old === undefined ? {} : pendingMoves(tx, old, next),
  }
  tx.put(versionKey(conv_id, version), Buffer.from(next.text))
  tx.put(processKey(conv_id), encodeRecord(head))
  return { version, state: old === undefined ? 'created' : 'updated' }
}

/** Where the tasks of nodes that are gone go, for each such node that has any. */
function pendingMoves(tx: Tx, old: Process, next: NewVersion): Record<string, string> {
  const { graph, conv_id } = next
  const mistakes = Object.values(next.moves)
    .filter((to) => !graph.nodes.has(to))
    .map((to) => `move to "${to}": no such node`)
  if (mistakes.length > 0) throw badDefinition(mistakes)
  const moves: Record<string, string> = Object.create(null) as Record<string, string>
  const homeless: string[] = []
  for (const node_id of new Set([...old.graph.nodes.keys(), ...Object.keys(old.head.moves)])) {
    const tasks = decodeCount(tx.get(nodeCountKey(conv_id, node_id)))
    if (tasks === 0 || graph.nodes.has(node_id)) continue
    const before = moveOf(old.head.moves, node_id)
    const to =
      moveOf(next.moves, node_id) ??
      (graph.nodes.has(before ?? '') ? before : moveOf(next.moves, before ?? ''))
    if (to === undefined) homeless.push(`node "${node_id}" with ${tasks} tasks`)
    else moves[node_id] = to
  }
  if (homeless.length > 0) {
    throw fault('tasks_in_node', `the definition drops ${homeless.join(', ')}; say where they go`)
  }
  return moves
}

function mustFind(view: View, catalog: Catalog, conv_id: string): Process {
  const process = catalog.find(view, conv_id)
  if (process === undefined) {
    throw fault('conv_not_found', `Object conv with id ${conv_id} does not exist`)
  }
  return process
}

function liveTasks(view: View, conv_id: string): number {
  let tasks = 0
  for (const { value } of view.scan({ ...countsOf(conv_id), limit: Infinity })) {
    tasks += decodeCount(value)
  }
  return tasks
}

function listProcesses(view: View): ProcessInfo[] {
  return view.scan({ ...familySpan('process'), limit: Infinity }).map(({ key, value }) => {
    const head = decodeRecord<ProcessHead>(value)
    return infoOf(view, processOfKey(key), head)
  })
}

function infoOf(view: View, conv_id: string, head: ProcessHead): ProcessInfo {
  const { title, status, version, hash } = head
  return { conv_id, title, status, version, hash, tasks: liveTasks(view, conv_id) }
}

function showProcess(view: View, { conv_id, head, graph }: Process): ProcessDetails {
  const definition_text = view.get(versionKey(conv_id, head.version))?.toString('utf8') ?? ''
  const counts = new Map<string, number>()
  for (const { key, value } of view.scan({ ...countsOf(conv_id), limit: Infinity })) {
    counts.set(nodeCountOfKey(key).node, decodeCount(value))
  }
  const edges = edgesOf(definition_text)
  return {
    ...infoOf(view, conv_id, head),
    definition_text,
    nodes: [...graph.nodes.values()].map(({ id, title, kind }) => ({
      id,
      title,
      kind,
      tasks: counts.get(id) ?? 0,
      to: edges.get(id) ?? [],
    })),
    shared_with: grantsFor(view, conv_id).map(({ user, bits }) => ({ user, can: readCan(bits) })),
  }
}

/** Grants come by user, so this reads all of them; only administration asks. */
function grantsFor(view: View, conv_id: string): { user: string; bits: number }[] {
  return view
    .scan({ ...familySpan('grant'), limit: Infinity })
    .map(({ key, value }) => ({ ...grantOfKey(key), bits: value[0] ?? 0 }))
    .filter((grant) => grant.conv === conv_id)
}
