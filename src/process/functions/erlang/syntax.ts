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

type Expressions = readonly Expression[]
type Clauses = readonly Clause[]
type Qualifiers = readonly Qualifier[]
type Links = readonly { readonly sign: string; readonly operand: Expression }[]
export type MapEntry = readonly [key: Expression, value: Expression]

/** A node of the tree; `at` is its offset. */
export type Expression = { readonly at: number } & (
  | { readonly kind: 'literal'; readonly value: ErlangTerm }
  /** A `word` is an atom, unless it is the name of a parameter. */
  | { readonly kind: 'variable' | 'word'; readonly name: string }
  | { readonly kind: 'members'; readonly of: Expression; readonly keys: readonly string[] }
  /** A `binary` is texts that are joined; a `block` has the value of its last part. */
  | { readonly kind: 'tuple' | 'binary' | 'block'; readonly parts: Expressions }
  | { readonly kind: 'list'; readonly parts: Expressions; readonly tail?: Expression }
  | { readonly kind: 'map'; readonly sign: string; readonly entries: readonly MapEntry[] }
  | { readonly kind: 'call'; name: string; readonly apply: Apply; readonly parts: Expressions }
  | { readonly kind: 'chain'; level: OperatorLevel; first: Expression; readonly rest: Links }
  | { readonly kind: 'prefixed'; readonly signs: readonly string[]; readonly value: Expression }
  /** `P = Q = Value`. */
  | { readonly kind: 'match'; readonly patterns: Expressions; readonly value: Expression }
  | { readonly kind: 'cases'; subject: Expression | undefined; readonly clauses: Clauses }
  | { readonly kind: 'comprehension'; item: Expression; readonly qualifiers: Qualifiers }
)
