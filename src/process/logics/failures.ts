/** The commands by which a logic fails. Tags and descriptions are part of the process format. */
import { bytesOf } from '../../codec/json.ts'
import type { Doc, JsonValue } from '../../core/model.ts'
import type { Command, CompiledLogic, ErrorType, FailCommand } from '../logic.ts'
import { truncated } from '../report.ts'
import { type Expansion, expansionOf, failWith } from '../templates/parser.ts'
import { textOf } from '../values.ts'

export interface LogicFailure {
  /** Default `software`: a retry does not help. */
  readonly error_type?: ErrorType
  readonly tag: string
  readonly description: string
}

export function fail(
  kind: string,
  { error_type = 'software', tag, description }: LogicFailure,
  err_node_id: string | undefined,
): FailCommand {
  return { command: 'fail', kind, error_type, tag, description, err_node_id }
}

/** Tags of a kind that do not follow from its name. */
export interface ExpansionTags {
  readonly convert?: string
  readonly overflow?: string
}

/** The failure of a logic of `kind` whose templates failed. */
export function failedExpansion(
  kind: string,
  { failure, context }: Expansion,
  err_node_id: string | undefined,
  tags: ExpansionTags = {},
): FailCommand {
  const { convert = `${kind}_wrong_convert_param`, overflow = `${kind}_task_size_overflow` } = tags
  if (failure?.why === 'overflow') {
    const description = `the values are longer than ${context.task_bytes_max} bytes`
    return fail(kind, { tag: overflow, description }, err_node_id)
  }
  const description = failure?.description ?? ''
  if (failure?.why === 'bind') {
    const tag = `${kind}_bind_error`
    return fail(kind, { error_type: 'hardware', tag, description }, err_node_id)
  }
  const tag = failure?.why === 'denied' ? 'access_denied' : convert
  return fail(kind, { tag, description }, err_node_id)
}

/** A logic whose templates make a command. Undefined fails it, as the expansion says. */
export function expanding(
  kind: string,
  err_node_id: string | undefined,
  make: (expansion: Expansion) => Command | undefined,
  tags?: ExpansionTags,
): CompiledLogic {
  return {
    err_node_id,
    run(context) {
      const expansion = expansionOf(context)
      return make(expansion) ?? failedExpansion(kind, expansion, err_node_id, tags)
    },
  }
}

/** Fails the expansion: the value of `param` cannot be converted to `type`. */
export function failConversion(
  expansion: Expansion,
  param: string,
  value: JsonValue,
  type: string | undefined,
): undefined {
  return failWith(expansion, 'convert', conversionText(param, value, type))
}

export function conversionText(param: string, value: JsonValue, type: string | undefined): string {
  const shown = truncated(textOf(value))
  return `Param: ${truncated(param)}, Value: ${shown}, Try convert to: ${type}`
}

/** How descriptions of data that is too large end in a task; those of ops do not (wire 1.4). */
export const advice = ', Try to change your data or try to split your task'

/** Why the data is too large for a task; undefined where it is not. */
export function oversize({ text }: Doc, task_bytes_max: number): string | undefined {
  const bytes = bytesOf(text)
  if (bytes <= task_bytes_max) return undefined
  return `Your task size: ${bytes} bytes, Max available task size: ${task_bytes_max} bytes${advice}`
}
