/** Public types of `Engine.process`: the calls of one process, typed by its `defineProcess`. */
import type { Caller, OpResult, Task } from '../../core/model.ts'
import type { ProcessTypes } from '../../process/process-types.ts'
import type { HandlerContext, HandlerOptions } from './handler-api.ts'
import type { CreateInput, ModifyInput, ResultOptions, TargetInput } from './task-api.ts'

/** `data` is the schema's output; `data_text` is as stored. */
export type TypedTask<Data> = Omit<Task, 'data'> & { readonly data: Data }

/** By ref or obj_id; the obj_id takes precedence. */
export type OwnTarget = Omit<TargetInput, 'conv_id'>

/**
 * One process, typed by the schemas of its `defineProcess`. Schemas are in this program, not in the
 * file: data that comes by HTTP, gRPC or `engine.create` is not checked by them, so it is checked
 * again when read.
 *
 *     const order = defineProcess({
 *       id: 1234,
 *       data: z.object({ amount: z.number(), charge_id: z.string().optional() }),
 *       nodes: {
 *         start: go('charge'),
 *         charge: [callback(), go('pay')],
 *         pay: [callback({ data: z.object({ paid: z.boolean() }) }), go('done')],
 *         done: end({ save: true }),
 *       },
 *     })
 *     const orders = engine.process(order)
 *     orders.handle('charge', async ({ data }, { key }) => {
 *       return { charge_id: await bank.charge(data.amount, key) }
 *     })
 *     await engine.processes.put(order)
 *     await orders.create({ ref: 'order-1', data: { amount: 120 } })
 *     await orders.callback('pay', { ref: 'order-1', data: { paid: true } })
 *     const { status, data } = await orders.result({ ref: 'order-1' })
 *
 * `create` and `callback` store the schema's output, with its defaults and coercions. Data that it
 * refuses, a schema that throws, and one whose promise takes over 10 s give `wrong_validate_params`
 * without a change; `description` has path and message of the first 8 issues. Only a malformed
 * target comes before this. Output that is not JSON is refused as `create` refuses it. A random
 * default (an id) makes a repeated create a different one, which its ref then refuses.
 *
 * Read data (of tasks and in handlers) is the schema's output for the stored data, with numbers as
 * doubles. So a schema must accept its own output, and members that logics, callbacks and handlers
 * add later must be optional.
 */
export interface TypedProcess<Types extends ProcessTypes = ProcessTypes> {
  readonly conv_id: string
  create(
    op: Omit<CreateInput, 'conv_id' | 'data'> & { readonly data: Types['input'] },
    caller?: Caller,
  ): Promise<OpResult>
  /**
   * A modify that must resume the task at this node's callback, else
   * `no_api_callback_in_node_with_task`. Its data is checked with the callback's schema; without
   * one, any part of the process's data is taken unchecked.
   */
  callback<Node extends keyof Types['callbacks'] & string>(
    node: Node,
    op: OwnTarget & { readonly data: Types['callbacks'][Node] },
    caller?: Caller,
  ): Promise<OpResult>
  /** As `Engine.modify`. Its data is typed but unchecked: a schema is for the whole data. */
  modify(
    op: Omit<ModifyInput, 'conv_id' | 'data'> & { readonly data: Partial<Types['input']> },
    caller?: Caller,
  ): Promise<OpResult>
  /**
   * As `Engine.handle`, by the title of a node of this process, or the type of its `handled` step.
   * The handler gets the schema's output. Refused data is a final failure (tag `handler_error`)
   * whose description has only the paths; the handler is not called. A schema that throws or is
   * late is a failed attempt.
   *
   * Throws a RangeError if another node of the process has the same title or type.
   */
  handle(node: Types['handled'], handler: TypedHandler<Types>, options?: HandlerOptions): () => void
  /** As `Engine.task`. Rejects with `wrong_validate_params` if the schema refuses the data. */
  task(target: OwnTarget): Promise<TypedTask<Types['output']> | undefined>
  /** As `Engine.result`, and as `task` for data that the schema refuses. */
  result(target: OwnTarget, options?: ResultOptions): Promise<TypedTask<Types['output']>>
}

/** A `Handler` with typed data. Its return value is merged unchecked. */
export type TypedHandler<Types extends ProcessTypes> = (
  task: TypedTask<Types['output']>,
  context: HandlerContext,
) => HandlerResult<Types['input']> | Promise<HandlerResult<Types['input']>>

// biome-ignore lint/suspicious/noConfusingVoidType: a handler may return nothing
type HandlerResult<Data> = Partial<Data> | null | undefined | void
