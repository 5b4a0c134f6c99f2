/** The tree of a fun. Each node has its offset, for the mistakes that the compiler reports. */
import type { Apply, OperatorLevel } from './operators.ts'
import type { ErlangTerm } from './terms.ts'

export interface Clause {
  /** Undefined in an `if`. */
  readonly pattern: Expression | undefined
  /** Lists of guards: one list must hold as a whole. Empty where there is no guard. */
  readonly guards: readonly (readonly Expression[])[]
  readonly body: readonly Expression[]
}

/** Of a comprehension: a generator where it has a pattern, else a filter. */
export interface Qualifier {
  readonly pattern: Expression | undefined
  readonly value: Expression
}

export type MapEntry = readonly [key: Expression, value: Expression]

/** A node of the tree; `at` is its offset. */
export type Expression = { readonly at: number } & (
  | { readonly kind: 'literal'; readonly value: ErlangTerm }
  /** A `word` is an atom, unless it is the name of a parameter. */
  | { readonly kind: 'variable' | 'word'; readonly name: string }
  | { readonly kind: 'members'; readonly of: Expression; readonly keys: readonly string[] }
  /** A `binary` is texts that are joined; a `block` has the value of its last part. */
  | { readonly kind: 'tuple' | 'binary' | 'block'; readonly parts: readonly Expression[] }
  | { readonly kind: 'list'; readonly parts: readonly Expression[]; readonly tail?: Expression }
  | { readonly kind: 'map'; readonly sign: string; readonly entries: readonly MapEntry[] }
  | {
      readonly kind: 'call'
      readonly name: string
      readonly apply: Apply
      readonly parts: readonly Expression[]
    }
  | {
      readonly kind: 'chain'
      readonly level: OperatorLevel
      readonly first: Expression
      readonly rest: readonly { readonly sign: string; readonly operand: Expression }[]
    }
  | { readonly kind: 'prefixed'; readonly signs: readonly string[]; readonly value: Expression }
  /** `P = Q = Value`. */
  | {
      readonly kind: 'match'
      readonly patterns: readonly Expression[]
      readonly value: Expression
    }
  | {
      readonly kind: 'cases'
      readonly subject: Expression | undefined
      readonly clauses: readonly Clause[]
    }
  | {
      readonly kind: 'comprehension'
      readonly item: Expression
      readonly qualifiers: readonly Qualifier[]
    }
)
