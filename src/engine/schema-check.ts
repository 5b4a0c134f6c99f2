/**
 * Data through a schema of the embedder's. Nothing it does is trusted: it may throw, answer late or
 * never, and refuse without a reason. What is told of its issues is bounded; the place of an issue
 * is told to everyone, its message, which may quote the data, only to whom sent the data.
 */
import { type Clock, within } from '../core/clock.ts'
import type { SchemaIssue, SchemaResult, StandardSchema } from '../core/standard-schema.ts'

/** How long a schema may take that answers with a promise. */
const schema_ms_max = 10_000
const issues_max = 8
const path_steps_max = 16
const text_chars_max = 128

/** Rejects where the schema throws, and where it takes too long. */
export async function applySchema(
  schema: StandardSchema,
  data: unknown,
  clock: Clock,
): Promise<SchemaResult<unknown>> {
  const given = schema['~standard'].validate(data)
  if (typeof (given as unknown) !== 'object' || given === null) throw new Error('it gave no result')
  const result = 'then' in given ? await within(clock, schema_ms_max, given) : given
  if (result === 'late') throw new Error(`it took more than ${schema_ms_max} ms`)
  return result
}

/** As the engine tells of a parameter: `Param: amount, Error: …`. */
export function describeIssues(issues: readonly SchemaIssue[]): string {
  return listed(issues, (issue) => {
    const error = typeof issue.message === 'string' ? issue.message : 'not valid'
    const place = placeOf(issue)
    return `${place === '' ? '' : `Param: ${place}, `}Error: ${cut(error)}`
  })
}

/** Where the issues are, and nothing else of the data. */
export function placesOf(issues: readonly SchemaIssue[]): string {
  return listed(issues, (issue) => placeOf(issue) || 'the whole')
}

function listed(issues: readonly SchemaIssue[], textOf: (issue: SchemaIssue) => string): string {
  const texts = issues.slice(0, issues_max).map(textOf)
  if (texts.length === 0) texts.push(textOf({ message: 'not valid' }))
  if (issues.length > issues_max) texts.push(`${issues.length - issues_max} more`)
  return texts.join('; ')
}

/** A path as definitions write it: `customer.phones[0]`. */
function placeOf({ path = [] }: SchemaIssue): string {
  const steps = path.slice(0, path_steps_max).map((step) => {
    const key = typeof step === 'object' ? step.key : step
    return typeof key === 'number' ? `[${key}]` : `.${String(key)}`
  })
  return cut(steps.join('').replace(/^\./, ''))
}

export function cut(text: string): string {
  return text.length <= text_chars_max ? text : `${text.slice(0, text_chars_max)}…`
}
