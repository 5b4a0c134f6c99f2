/**
 * The Standard Schema interface (https://standardschema.dev, version 1), as far as it is used here:
 * schemas of zod, valibot, arktype and others have it. It is stated here, so that no library is
 * needed for it.
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

/** What a schema makes of a value, or why it refuses it. */
export type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] }

export interface SchemaIssue {
  readonly message: string
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}

type SchemaTypes<Schema extends StandardSchema> = NonNullable<Schema['~standard']['types']>

/** What a schema takes. */
export type InputOf<Schema extends StandardSchema> = SchemaTypes<Schema>['input']

/** What a schema makes of it. */
export type OutputOf<Schema extends StandardSchema> = SchemaTypes<Schema>['output']
