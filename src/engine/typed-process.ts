/**
 * `Engine.process`: the calls for one process of `defineProcess`, with its schemas in between.
 * Schemas are not trusted: they may throw, answer late or refuse without a reason. Texts of issues
 * are bounded; messages, which may quote data, go only to the sender of the data.
 */
import { isOp, parseTaskOp } from '../codec/op.ts'
import { type Clock, within } from '../core/clock.ts'
import { fault } from '../core/faults.ts'
import type { OpResult, Task } from '../core/model.ts'
import type { SchemaIssue, SchemaResult, StandardSchema } from '../core/standard-schema.ts'
import { handler_types } from '../process/logics/table.ts'
import {
  type DataSchema,
  type NodeDefinition,
  type ProcessDefinition,
  type ProcessTypes,
  schemas_of,
} from '../process/process-types.ts'
import type { Engine } from './api/engine-api.ts'
import type { CreateInput, ModifyInput } from './api/task-api.ts'
import type { TypedProcess, TypedTask } from './api/typed-process-api.ts'
import { refused } from './tasks/ops.ts'

/** Throws a TypeError unless the value is from `defineProcess`. */
export function typedProcess<Types extends ProcessTypes>(
  engine: Engine,
  definition: ProcessDefinition<Types>,
): TypedProcess<Types> {
  const schemas = definition[schemas_of]
  if (schemas === undefined) throw new TypeError('process takes a value of defineProcess')
  const { clock, limits } = engine
  const conv_id = String(definition.obj_id)

  /** The schema's output, or the result that refuses the data. */
  async function checked(
    type: 'create' | 'modify',
    members: CreateInput | ModifyInput,
    schema: DataSchema | undefined,
  ): Promise<OpResult | { readonly data: unknown }> {
    if (schema === undefined) return { data: members.data }
    const op = parseTaskOp(type, { ...members, data: {} }, limits)
    if (!isOp(op)) return op
    let description: string
    try {
      const result = await applySchema(schema, members.data, clock)
      if (result.issues === undefined) return { data: result.value }
      description = describeIssues(result.issues)
    } catch (error) {
      const reason = error instanceof Error ? `: ${error.message}` : ''
      description = cut(`Error: the schema threw${reason}`)
    }
    return refused(op, { code: 'wrong_validate_params', description })
  }

  async function typed(task: Task): Promise<TypedTask<Types['output']>> {
    const { data: schema } = schemas
    if (schema === undefined) return task as TypedTask<Types['output']>
    const result = await applySchema(schema, task.data, clock)
    if (result.issues !== undefined) {
      const places = placesOf(result.issues)
      throw fault('wrong_validate_params', `the schema refuses the data of the task at: ${places}`)
    }
    // A copy, because others may have the task; its history is read from the task itself.
    return Object.defineProperties({} as TypedTask<Types['output']>, {
      ...Object.getOwnPropertyDescriptors(task),
      data: { value: result.value, enumerable: true },
      history: { get: () => task.history },
    })
  }

  return {
    conv_id,
    async create(op, caller) {
      const members = { ...op, conv_id }
      const given = await checked('create', members, schemas.data)
      return 'proc' in given ? given : engine.create({ ...members, ...given }, caller)
    },
    async callback(node, op, caller) {
      const members = { ...op, conv_id, node_id: node, is_sync: true }
      const schema = Object.hasOwn(schemas.callbacks, node) ? schemas.callbacks[node] : undefined
      const given = await checked('modify', members, schema)
      return 'proc' in given ? given : engine.modify({ ...members, ...given }, caller)
    },
    modify: (op, caller) => engine.modify({ ...op, conv_id }, caller),
    handle(node, handler, options) {
      const removers = handlerNames(definition, node).map((name) =>
        engine.handle(
          `${conv_id}/${name}`,
          async (task, context) => handler(await typed(task), context),
          options,
        ),
      )
      return () => {
        for (const remove of removers) remove()
      }
    },
    async task(target) {
      const task = await engine.task({ ...target, conv_id })
      return task && typed(task)
    },
    result: async (target, options) => typed(await engine.result({ ...target, conv_id }, options)),
  }
}

/** A node's handler names: its title, and the types it runs. */
function handlerNames({ scheme }: ProcessDefinition, node_id: string): string[] {
  const names = scheme.nodes.filter(({ id }) => id === node_id).flatMap(namesOf)
  if (names.length === 0) throw new RangeError(`no handler answers in a node "${node_id}"`)
  for (const other of scheme.nodes) {
    const shared = namesOf(other).find((name) => names.includes(name))
    if (other.id === node_id || shared === undefined) continue
    throw new RangeError(
      `nodes "${node_id}" and "${other.id}" have one handler, "${shared}": use Engine.handle`,
    )
  }
  return names
}

function namesOf({ title, condition }: NodeDefinition): string[] {
  const types = new Set(condition.logics.map(({ type }) => type))
  const handled = handler_types.filter((type) => types.has(type))
  return types.has('api_callback') ? [title, ...handled] : handled
}

const schema_ms_max = 10_000
const issues_max = 8
const path_steps_max = 16
const text_chars_max = 128

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

/** Like other parameter errors: `Param: amount, Error: …`. */
export function describeIssues(issues: readonly SchemaIssue[]): string {
  return listed(issues, (issue) => {
    const error = typeof issue.message === 'string' ? issue.message : 'not valid'
    const place = placeOf(issue)
    return `${place === '' ? '' : `Param: ${place}, `}Error: ${cut(error)}`
  })
}

export function placesOf(issues: readonly SchemaIssue[]): string {
  return listed(issues, (issue) => placeOf(issue) || 'the whole')
}

function listed(issues: readonly SchemaIssue[], textOf: (issue: SchemaIssue) => string): string {
  const texts = issues.slice(0, issues_max).map(textOf)
  if (texts.length === 0) texts.push(textOf({ message: 'not valid' }))
  if (issues.length > issues_max) texts.push(`${issues.length - issues_max} more`)
  return texts.join('; ')
}

/** As definitions write it: `customer.phones[0]`. */
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
