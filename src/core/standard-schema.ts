/**
 * The part of the Standard Schema interface (https://standardschema.dev, version 1) that is used
 * here, restated to avoid a dependency. Schemas of zod, valibot and arktype have it.
 */

export interface StandardSchema<out Input = unknown, out Output = Input> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>
    /** Only for the type system. */
    readonly types?: { readonly input: Input; readonly output: Output } | undefined
  }
}

export type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] }

export interface SchemaIssue {
  readonly message: string
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}

type SchemaTypes<Schema extends StandardSchema> = NonNullable<Schema['~standard']['types']>

export type InputOf<Schema extends StandardSchema> = SchemaTypes<Schema>['input']

export type OutputOf<Schema extends StandardSchema> = SchemaTypes<Schema>['output']
