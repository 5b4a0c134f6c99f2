/**
 * The public types of a process whose data has a schema: the calls of the engine for this one
 * process, with the types of its `defineProcess`.
 */
import type { Caller, OpResult, Task } from '../../core/model.ts'
import type { ProcessTypes } from '../../process/process-types.ts'
import type { HandlerContext, HandlerOptions } from './handler-api.ts'
import type { CreateInput, ModifyInput, ResultOptions, TargetInput } from './task-api.ts'

/** A task whose `data` is what the schema makes of it; `data_text` is as stored. */
export type TypedTask<Data> = Omit<Task, 'data'> & { readonly data: Data }

/** A task of the process by its ref or obj_id; with both, the obj_id decides. */
export type OwnTarget = Omit<TargetInput, 'conv_id'>

/**
 * One process, typed by the schemas of its `defineProcess`. They live in this program, not in the
 * file: what comes another way (HTTP, gRPC, `engine.create`, another program) is not checked by
 * them. So data is checked again when it is read.
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
 * `create` and `callback` store what the schema makes of their data, with its defaults and
 * coercions. What it refuses is a result with `proc` `wrong_validate_params`, and nothing is
 * applied; `description` has the path and message of the first 8 issues. So is a schema that
 * throws, or whose promise takes more than 10 s. This comes before all other reasons to refuse an
 * op but a malformed target. What is no JSON after the schema is refused as `create` refuses it.
 * A default that differs each time (a random id) makes a repeated create another one, which its
 * ref then refuses.
 *
 * Data that is read, as `data` of a task here and in a handler, is what the schema makes of the
 * stored data: as JSON, each number a double. So a schema must take its own output, and members
 * that logics, callbacks and handlers add later are optional in it.
 */
export interface TypedProcess<Types extends ProcessTypes = ProcessTypes> {
  readonly conv_id: string
  create(
    op: Omit<CreateInput, 'conv_id' | 'data'> & { readonly data: Types['input'] },
    caller?: Caller,
  ): Promise<OpResult>
  /**
   * A modify that must resume the task at the callback of this node: another task than one that
   * waits there is refused with `no_api_callback_in_node_with_task`. The data is checked with the
   * schema of the callback; a callback without one takes any part of the process's data unchecked.
   */
  callback<Node extends keyof Types['callbacks'] & string>(
    node: Node,
    op: OwnTarget & { readonly data: Types['callbacks'][Node] },
    caller?: Caller,
  ): Promise<OpResult>
  /** As `Engine.modify`. Its data is typed and not checked: a schema is for the whole data. */
  modify(
    op: Omit<ModifyInput, 'conv_id' | 'data'> & { readonly data: Partial<Types['input']> },
    caller?: Caller,
  ): Promise<OpResult>
  /**
   * As `Engine.handle`, for a node of this process: by its title, or by the type of its `handled`
   * step. The handler gets the data as the schema makes it. Data that the schema refuses is a final
   * failure of the handler (tag `handler_error`), whose description has the paths and nothing
   * else of the data; the handler is not called. A schema that throws, or is late, is a failed
   * attempt.
   *
   * Throws a RangeError where another node of the process has the same title or type.
   */
  handle(node: Types['handled'], handler: TypedHandler<Types>, options?: HandlerOptions): () => void
  /**
   * As `Engine.task`. Rejects with `wrong_validate_params` where the schema refuses the data;
   * `Engine.task` reads such a task.
   */
  task(target: OwnTarget): Promise<TypedTask<Types['output']> | undefined>
  /** As `Engine.result`, and as `task` for data that the schema refuses. */
  result(target: OwnTarget, options?: ResultOptions): Promise<TypedTask<Types['output']>>
}

/** A `Handler` with typed data. What it returns is merged into the data, unchecked. */
export type TypedHandler<Types extends ProcessTypes> = (
  task: TypedTask<Types['output']>,
  context: HandlerContext,
) => HandlerResult<Types['input']> | Promise<HandlerResult<Types['input']>>

// biome-ignore lint/suspicious/noConfusingVoidType: a handler may return nothing
type HandlerResult<Data> = Partial<Data> | null | undefined | void
