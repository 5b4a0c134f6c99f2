/**
 * Compiles the tree of a fun to closures. A variable is a slot of the evaluation; an unbound name
 * is refused with its place. A closure gives undefined where the evaluation has failed; a failed
 * guard is false. Only the list and comprehensions repeat, and each round spends steps.
 */
import type { TemplateCursor } from '../../templates/parser.ts'
import {
  chained,
  type Evaluate,
  type Link,
  listOfParts,
  listWithTail,
  mapOfParts,
  membersOf,
  prefixed,
  textOfParts,
  withAll,
} from './closures.ts'
import {
  compileMatch,
  innerScope,
  type Match,
  mistakeOf,
  type Scope,
  scopeOf,
  slotOf,
} from './match.ts'
import type { Apply } from './operators.ts'
import { readFun } from './parser.ts'
import type { Clause, Expression, Qualifier } from './syntax.ts'
import {
  atomOf,
  type ErlangTerm,
  type Evaluation,
  failTerm,
  listOf,
  type Result,
  shown,
  sized,
  spend,
  tupleOf,
} from './terms.ts'

/** The value of the fun for one item; undefined where the evaluation has failed. */
export type Fun = (evaluation: Evaluation, item: ErlangTerm) => Result

export function compileFun(cursor: TemplateCursor): Fun {
  const clauses = readFun(cursor)
  const end = cursor.at
  const fun = compileClauses(clauses, scopeOf(cursor), 'fun')
  cursor.at = end
  return fun
}

function compileClauses(
  clauses: readonly Clause[],
  scope: Scope,
  what: 'fun' | 'case' | 'if',
): Fun {
  const scopes: Scope[] = []
  const compiled = clauses.map(({ pattern, guards, body }) => {
    const inner = innerScope(scope)
    scopes.push(inner)
    const match: Match = pattern === undefined ? () => true : compileMatch(pattern, inner)
    const tests = guards.map((guard) => compileAll(guard, inner))
    return { match, tests, body: compileBody(body, inner) }
  })
  // A variable that every clause binds is bound after the clauses.
  for (const [name, slot] of scopes[0]?.bound ?? []) {
    if (scopes.every(({ bound }) => bound.has(name))) scope.bound.set(name, slot)
  }
  return (evaluation, term) => {
    for (const { match, tests, body } of compiled) {
      if (!spend(evaluation, 1)) return undefined
      const is_match = match(evaluation, term)
      if (evaluation.failure !== undefined) return undefined
      if (is_match && (tests.length === 0 || tests.some((test) => holds(test, evaluation)))) {
        return body(evaluation)
      }
    }
    return failTerm(evaluation, `no clause of the ${what} fits ${shown(term)}`)
  }
}

/** Whether each guard is true; a failed one is not. */
function holds(guards: readonly Evaluate[], evaluation: Evaluation): boolean {
  const are_true = guards.every((guard) => guard(evaluation) === true)
  evaluation.failure = undefined
  return are_true
}

function compileAll(parts: readonly Expression[], scope: Scope): readonly Evaluate[] {
  return parts.map((part) => compile(part, scope))
}

function compileBody(body: readonly Expression[], scope: Scope): Evaluate {
  const statements = [...compileAll(body, scope)]
  const last = statements.pop() as Evaluate
  if (statements.length === 0) return last
  return (evaluation) => {
    for (const statement of statements) if (statement(evaluation) === undefined) return undefined
    return last(evaluation)
  }
}

function compile(expression: Expression, scope: Scope): Evaluate {
  switch (expression.kind) {
    case 'literal': {
      const { value } = expression
      return () => value
    }
    case 'word':
    case 'variable': {
      const { name } = expression
      if (expression.kind === 'word' && !scope.bound.has(name)) {
        const atom = atomOf(name)
        return () => atom
      }
      const slot = slotOf(scope, expression, name)
      return ({ variables }) => variables[slot]
    }
    case 'members':
      return membersOf(compile(expression.of, scope), expression.keys)
    case 'tuple':
      return withAll('{…}', compileAll(expression.parts, scope), (_evaluation, parts) =>
        tupleOf(parts),
      )
    case 'binary':
      return withAll('<<…>>', compileAll(expression.parts, scope), textOfParts)
    case 'block':
      return compileBody(expression.parts, scope)
    case 'list': {
      const { parts, tail } = expression
      const make = tail === undefined ? listOfParts : listWithTail
      return withAll('[…|…]', compileAll([...parts, ...(tail ? [tail] : [])], scope), make)
    }
    case 'map':
      if (expression.sign === ':=') {
        throw mistakeOf(scope, expression, 'a map is written #{Key => Value}')
      }
      return withAll('#{…}', compileAll(expression.entries.flat(), scope), mapOfParts)
    case 'call': {
      const { name, apply, parts } = expression
      return withAll(name, compileAll(parts, scope), (evaluation, terms) =>
        apply(evaluation, ...terms),
      )
    }
    case 'prefixed':
      return prefixed(expression.signs, compile(expression.value, scope))
    case 'chain': {
      const { level, first, rest } = expression
      const start = compile(first, scope)
      const links = rest.map(({ sign, operand }): Link => {
        return { sign, apply: level.operators[sign] as Apply, operand: compile(operand, scope) }
      })
      return chained(level.order, start, links)
    }
    case 'match': {
      const value = compile(expression.value, scope)
      const patterns = expression.patterns.map((pattern) => compileMatch(pattern, scope))
      return (evaluation) => {
        const term = value(evaluation)
        if (term === undefined) return undefined
        if (patterns.every((match) => match(evaluation, term))) return term
        return failTerm(evaluation, `no match of ${shown(term)}`)
      }
    }
    case 'cases': {
      const { subject, clauses } = expression
      const value: Evaluate = subject === undefined ? () => true : compile(subject, scope)
      const choose = compileClauses(clauses, scope, subject === undefined ? 'if' : 'case')
      return (evaluation) => {
        const term = value(evaluation)
        return term === undefined ? undefined : choose(evaluation, term)
      }
    }
    case 'comprehension':
      return compileComprehension(expression.item, expression.qualifiers, innerScope(scope))
  }
}

/** Of each combination of the generators for which all filters are true, the item. */
function compileComprehension(
  item: Expression,
  qualifiers: readonly Qualifier[],
  scope: Scope,
): Evaluate {
  const steps = qualifiers.map(({ pattern, value }) => {
    const from = compile(value, scope)
    if (pattern === undefined) return { match: undefined, from }
    // Its variables are new, also where the name is bound outside.
    const own: Scope = { ...scope, bound: new Map(), named: new Map() }
    const match = compileMatch(pattern, own)
    for (const [name, slot] of own.bound) scope.bound.set(name, slot)
    return { match, from }
  })
  const last = compile(item, scope)
  /** Whether to go on. */
  const visit = (evaluation: Evaluation, at: number, made: ErlangTerm[]): boolean => {
    const step = steps[at]
    const term = (step?.from ?? last)(evaluation)
    if (term === undefined || !spend(evaluation, 1)) return false
    if (step === undefined) return made.push(term) > 0
    const { match } = step
    if (match === undefined) {
      if (typeof term === 'boolean') return !term || visit(evaluation, at + 1, made)
      failTerm(evaluation, `the filter gives ${shown(term)}, neither true nor false`)
      return false
    }
    const items = listOf(evaluation, term)
    if (items === undefined) failTerm(evaluation, `${shown(term)} is no list`)
    return (
      items?.every((one) => {
        if (!spend(evaluation, 1)) return false
        return !match(evaluation, one) || visit(evaluation, at + 1, made)
      }) ?? false
    )
  }
  return (evaluation) => {
    const made: ErlangTerm[] = []
    return visit(evaluation, 0, made) ? sized(evaluation, made) : undefined
  }
}
