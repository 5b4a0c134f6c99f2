/**
 * What the type system knows of a process in TypeScript (define.ts): the types of its data, and the
 * nodes that wait for a modify or a handler. Schemas are under a symbol, so they stay out of the
 * data file.
 */
import type { InputOf, OutputOf, StandardSchema } from '../core/standard-schema.ts'

/** A schema whose output is an object, as data is. */
export type DataSchema = StandardSchema<unknown, object>

/** The data where there is no schema. */
export type AnyData = Readonly<Record<string, unknown>>

/** The type parameter of a step that waits for a modify. Nothing has this type. */
export interface Callback<out Schema extends DataSchema | undefined = undefined> {
  readonly brings: Schema
}

/** All that the type system knows of a process. */
export interface ProcessTypes {
  /** What a create takes. */
  readonly input: unknown
  /** What the schema makes of it, and of the data of a stored task. */
  readonly output: object
  /** What a modify brings, by node with a `callback()`. */
  readonly callbacks: object
  /** The names of the nodes that a handler may answer in. */
  readonly handled: string
}

export const schemas_of: unique symbol = Symbol.for('conveyor.schemas')

export interface ProcessSchemas<out Types extends ProcessTypes = ProcessTypes> {
  readonly data: DataSchema | undefined
  /** By node. */
  readonly callbacks: Readonly<Record<string, DataSchema>>
  /** Only for the type system: never set. */
  readonly types?: Types
}

/**
 * The value of `defineProcess`: a definition in the process format, as `engine.processes.put` takes
 * it, with the schemas and types that `engine.process` uses.
 */
export interface ProcessDefinition<out Types extends ProcessTypes = ProcessTypes> {
  readonly obj_type: 1
  readonly obj_id: string | number
  readonly title: string
  readonly description: string
  readonly conv_type: 'process' | 'state'
  readonly status: 'active'
  readonly params: readonly object[]
  readonly scheme: { readonly nodes: readonly NodeDefinition[] }
  readonly [schemas_of]: ProcessSchemas<Types>
}

/** A node in the process format. */
export interface NodeDefinition {
  readonly id: string
  readonly obj_type: number
  readonly title: string
  readonly description: string
  readonly x?: number
  readonly y?: number
  readonly condition: {
    readonly logics: readonly AnyData[]
    readonly semaphors: readonly AnyData[]
  }
  readonly options: { readonly save_task: boolean }
}

/**
 * A value as it is read back from the file: what JSON keeps of it. A number is a double again, a
 * Date its text.
 */
export type Stored<Value> = Value extends { toJSON(): infer Json }
  ? Stored<Json>
  : Value extends bigint
    ? number
    : Value extends string | number | boolean | null | undefined
      ? Value
      : { [Key in keyof Value]: Stored<Value[Key]> }

/**
 * A schema checks data at a create and again when it is read. So it must take what it has made of
 * the data, as JSON; else this type is an error of compilation.
 */
export type Rereadable<Schema extends DataSchema> =
  Stored<OutputOf<Schema>> extends InputOf<Schema>
    ? unknown
    : { readonly 'the schema must take its own output, as JSON': never }
