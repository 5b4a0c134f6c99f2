/**
 * Importing definitions: a file holds one or an array of them. All are read before the first is
 * stored, so a mistake in any of them stores none. What only the stored tasks can refuse (a dropped
 * node in which some rest) is seen when its turn comes; the refusal then names those stored before
 * it.
 */
import { isObject, parseJson } from '../../bytes/json.ts'
import type { Engine, PutResult } from '../../engine/api.ts'
import { compileProcess } from '../../logic/graph.ts'
import { fault, isFault } from '../../words/faults.ts'
import type { JsonValue } from '../../words/model.ts'

export interface ImportArgs {
  /** The file's text. */
  readonly text: string
  /** Instead of the definition's own id; only for a file with one definition. */
  readonly id?: string
  readonly moves?: Readonly<Record<string, string>>
}

/** Rejects with `format_error`, or what the engine's `putProcess` refuses with. */
export async function importProcesses(engine: Engine, args: ImportArgs): Promise<PutResult[]> {
  const bounds = { nesting_max: engine.limits.nesting_max, values_max: Number.MAX_SAFE_INTEGER }
  const parsed = parseJson(args.text, bounds)
  const definitions = Array.isArray(parsed) ? parsed : [parsed]
  if (definitions.length === 0) throw fault('bad_definition', 'the file holds no definition')
  if (definitions.length > 1) demandAll(engine, definitions, args.id)
  const options = {
    ...(args.id === undefined ? {} : { conv_id: args.id }),
    ...(args.moves === undefined ? {} : { moves: args.moves }),
  }
  const results: PutResult[] = []
  for (const definition of definitions) {
    try {
      results.push(await engine.putProcess(definition, options))
    } catch (error) {
      throw withStored(error, results)
    }
  }
  return results
}

function demandAll(
  engine: Engine,
  definitions: readonly JsonValue[],
  id: string | undefined,
): void {
  const mistakes: string[] = []
  if (id !== undefined)
    mistakes.push('the file holds several definitions, so none can be given an id')
  const ids = new Set<string>()
  for (const [at, definition] of definitions.entries()) {
    const found = isObject(definition)
      ? compileProcess(definition, engine.limits)
      : { graph: undefined, mistakes: ['no JSON object'] }
    for (const mistake of found.mistakes) mistakes.push(`definition ${at + 1}: ${mistake}`)
    if (found.graph === undefined) continue
    const { conv_id } = found.graph
    if (conv_id === undefined) mistakes.push(`definition ${at + 1}: obj_id is missing`)
    else if (ids.has(conv_id)) mistakes.push(`definition ${at + 1}: a second one of ${conv_id}`)
    else ids.add(conv_id)
  }
  if (mistakes.length > 0) throw fault('bad_definition', undefined, { mistakes })
}

function withStored(error: unknown, stored: readonly PutResult[]): unknown {
  if (!isFault(error) || stored.length === 0) return error
  const ids = stored.map(({ conv_id }) => conv_id).join(', ')
  return fault(error.code, `${error.message}; stored before it: ${ids}`, { cause: error })
}
