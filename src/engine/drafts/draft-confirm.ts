/**
 * The confirm of a draft: an import of the one process that it changes. It is compiled in slices
 * before the transaction that stores it, and there again where the draft has changed meanwhile.
 * A refused confirm leaves the draft as it was.
 */
import { fault, isFault, type Mistake } from '../../core/faults.ts'
import { atOnce, inSlices, type Sliced } from '../../core/slices.ts'
import { listOfNodes } from '../../process/compile-head.ts'
import { export_file_bytes_max } from '../../process/definition-limits.ts'
import type { Store, Tx, View } from '../../store/store.ts'
import type { PutResult } from '../api/process-api.ts'
import { badDefinition, compileAll, type NewVersion } from '../definitions/definitions.ts'
import { handlersIn, loadLimits, putVersion, resultOfPut } from '../definitions/imports.ts'
import type { ProcessParts } from '../definitions/processes.ts'
import type { Process } from '../transactions/catalog.ts'
import { idOf, type Made, madeBy } from './draft-definition.ts'
import { type Draft, dropDraft, findDraft, requireBase } from './draft-store.ts'

export interface Compiled {
  /** Undefined where there are mistakes. */
  readonly next: NewVersion | undefined
  readonly mistakes: readonly Mistake[]
  readonly warnings: readonly Mistake[]
}

/** A draft compiled ahead; `of` says in which state. */
export interface Ahead extends Compiled {
  readonly of: string
}

type CompileParts = Pick<ProcessParts, 'limits' | 'handlers' | 'engine'>

const stateOf = ({ conv_id, user, record }: Draft): string =>
  JSON.stringify([conv_id, user, record])

export const isOf = (ahead: Ahead | undefined, draft: Draft): ahead is Ahead =>
  ahead?.of === stateOf(draft)

/** Undefined without a draft. */
export async function compiledAhead(
  parts: CompileParts & Pick<ProcessParts, 'clock'> & { readonly store: Pick<Store, 'view'> },
  conv_id: string,
  user: string,
): Promise<Ahead | undefined> {
  const found = await parts.store.view((view) => {
    const draft = findDraft(view, conv_id, user, parts.clock.now_ms())
    return draft && { draft, made: madeBy(view, draft) }
  })
  if (found === undefined) return undefined
  const compiled = await inSlices(compileMade(parts, conv_id, found.made))
  await loadLimits(parts, [compiled.next])
  return { of: stateOf(found.draft), ...compiled }
}

function* compileMade(
  { limits, handlers, engine }: CompileParts,
  conv_id: string,
  { definition, lost }: Made,
): Sliced<Compiled> {
  const nodes = listOfNodes(definition.scheme) ?? []
  const { versions, mistakes, warnings } = yield* compileAll(
    [{ definition, place: '' }],
    limits,
    handlers,
    engine.db_call,
  )
  const [next] = versions
  const all = [...mistakes]
  for (const { node_id, name } of lost) {
    const text = `${name} is "***", and none is stored that could be kept`
    all.push({ text, conv_id, ...(node_id === '' ? {} : { node_id }) })
  }
  if (next !== undefined && next.text.length > export_file_bytes_max) {
    all.push({ text: `the definition is longer than ${export_file_bytes_max} bytes`, conv_id })
  }
  const places = warnings.map((warning): Mistake => {
    const at = /^nodes\[(\d+)\]/.exec(warning.text)?.[1]
    const node_id = at === undefined ? undefined : idOf(nodes[Number(at)] ?? null)
    return node_id === undefined ? warning : { ...warning, node_id }
  })
  return { next: all.length === 0 ? next : undefined, mistakes: all, warnings: places }
}

export interface ConfirmHow {
  readonly moves: Readonly<Record<string, string>>
  readonly dry_run: boolean
  /** For a webhook that this opens. */
  readonly nonce: string
  readonly now_ms: number
}

export interface Confirmed {
  readonly result: PutResult
  readonly warnings: readonly Mistake[]
  /** Call after the commit. */
  afterwards(): void
}

/** Throws `draft_outdated`, `bad_definition` or `tasks_in_node` before it writes. */
export function confirmIn(
  tx: Tx,
  parts: ProcessParts,
  {
    process,
    draft,
    ahead,
  }: {
    readonly process: Process
    readonly draft: Draft
    readonly ahead: Ahead | undefined
  },
  how: ConfirmHow,
): Confirmed {
  const { catalog, addresses, handlers, emit } = parts
  const { conv_id, user, record } = draft
  requireBase(tx, draft, process.record)
  const compiled = isOf(ahead, draft)
    ? ahead
    : atOnce(compileMade(parts, conv_id, madeBy(tx, draft)))
  const { next, mistakes, warnings } = compiled
  if (next === undefined) throw Object.assign(badDefinition(mistakes), { warnings })
  const before = handlersIn(tx, handlers, process)
  const by = { ...(user === '' ? {} : { confirmed_by: user }), confirmed_draft: record.version }
  const isNode = (node_id: string): boolean => next.graph.nodes.has(node_id)
  const put = { given: how.moves, isNode, nonce: how.nonce, now_ms: how.now_ms, by }
  catalog.expect([next])
  const stored = putVersion(how.dry_run ? withoutWrites(tx) : tx, catalog, next, put)
  const { result, idle } = resultOfPut(tx, parts, next, stored, before)
  if (how.dry_run) return { result, warnings, afterwards: () => {} }
  const is_unlocked = addresses.locks.changeOf(conv_id, next.graph, undefined) !== undefined
  if (is_unlocked) addresses.locks.remove(tx, conv_id)
  dropDraft(tx, draft)
  return {
    result,
    warnings,
    afterwards: () => {
      if (is_unlocked) addresses.locks.onRemoved(conv_id)
      for (const handler of idle) emit('handler_unused', { conv_id, handler })
    },
  }
}

const withoutWrites = (view: View): Tx => ({
  get: view.get,
  scan: view.scan,
  put: () => {},
  del: () => {},
})

/** The mistakes of a refused confirm; undefined where it is refused for another reason. */
export function mistakesOf(reason: unknown): readonly Mistake[] | undefined {
  if (!isFault(reason)) return undefined
  const is_of_nodes = reason.code === 'bad_definition' || reason.code === 'tasks_in_node'
  return is_of_nodes ? (reason.places ?? [{ text: reason.message }]) : undefined
}

export const noDraft = (conv_id: string): Error =>
  fault('not_possible', `process ${conv_id} has no draft of yours`)
