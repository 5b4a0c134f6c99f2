/**
 * Compiles the tree of a fun to closures. Variables are slots of the evaluation: each is bound
 * before it is read, which the compiler sees to, so a name that nothing binds is refused with its
 * place. A closure gives undefined where the evaluation has failed; a guard that fails does not
 * hold. Only a comprehension and the list itself repeat anything, and both spend steps.
 */
import type { JsonObject, JsonValue } from '../../../core/model.ts'
import type { TemplateCursor } from '../../templates/parser.ts'
import {
  compileMatch,
  innerScope,
  type Match,
  mistakeOf,
  type Scope,
  scopeOf,
  slotOf,
} from './match.ts'
import { type Apply, prefixOperators } from './operators.ts'
import { type Clause, type Expression, type Qualifier, readFun } from './parser.ts'
import {
  atomOf,
  type ErlangTerm,
  type Evaluation,
  failTerm,
  isJsonObject,
  listOf,
  type MapPair,
  mapOf,
  shown,
  sized,
  spend,
  tupleOf,
  undefined_atom,
} from './terms.ts'

/** Undefined where the evaluation has failed. */
type Evaluate = (evaluation: Evaluation) => ErlangTerm | undefined

/** The value of the fun for one item; undefined where the evaluation has failed. */
export type Fun = (evaluation: Evaluation, item: ErlangTerm) => ErlangTerm | undefined

/** Parses and compiles the fun that begins at the cursor. */
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

/** Whether each guard is true. One that fails is not, whatever the others are. */
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
      return compileMembers(compile(expression.of, scope), expression.keys)
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
      return compilePrefixed(expression.signs, compile(expression.value, scope))
    case 'chain':
      return compileChain(expression, scope)
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
    case 'cases':
      return compileCases(expression.subject, expression.clauses, scope)
    case 'comprehension':
      return compileComprehension(expression.item, expression.qualifiers, innerScope(scope))
  }
}

type Make = (evaluation: Evaluation, parts: readonly ErlangTerm[]) => ErlangTerm | undefined

/** Makes a term of the values of all parts. */
function withAll(name: string, parts: readonly Evaluate[], make: Make): Evaluate {
  return (evaluation) => {
    const terms: ErlangTerm[] = []
    for (const part of parts) {
      const term = part(evaluation)
      if (term === undefined) return undefined
      terms.push(term)
    }
    if (!spend(evaluation, 1 + terms.length)) return undefined
    const made = make(evaluation, terms)
    if (made !== undefined && evaluation.failure === undefined) return made
    return failTerm(evaluation, `${name} has no value for ${terms.map(shown).join(', ')}`)
  }
}

const listOfParts: Make = (evaluation, parts) => sized(evaluation, parts)

const listWithTail: Make = (evaluation, parts) => {
  const tail = listOf(evaluation, parts.at(-1) as ErlangTerm)
  return tail && sized(evaluation, [...parts.slice(0, -1), ...tail])
}

const textOfParts: Make = (evaluation, parts) => {
  if (!parts.every((part) => typeof part === 'string')) return undefined
  return sized(evaluation, parts.join(''))
}

const mapOfParts: Make = (evaluation, parts) => {
  const pairs: MapPair[] = []
  for (let at = 0; at < parts.length; at += 2) {
    pairs.push([parts[at] as ErlangTerm, parts[at + 1] as ErlangTerm])
  }
  return mapOf(evaluation, pairs)
}

function compileMembers(of: Evaluate, keys: readonly string[]): Evaluate {
  return (evaluation) => {
    let term = of(evaluation)
    for (const key of keys) {
      if (term === undefined) return undefined
      const object: JsonObject = isJsonObject(term) ? term : {}
      term = Object.hasOwn(object, key) ? (object[key] as JsonValue) : undefined_atom
    }
    return term
  }
}

function compilePrefixed(signs: readonly string[], value: Evaluate): Evaluate {
  const applied = signs.map((sign) => ({ sign, apply: prefixOperators[sign] as Apply })).reverse()
  return (evaluation) => {
    let term = value(evaluation)
    for (const { sign, apply } of applied) {
      if (term === undefined || !spend(evaluation, 1)) return undefined
      term = apply(evaluation, term) ?? failTerm(evaluation, `${sign} ${shown(term)} has no value`)
    }
    return term
  }
}

function compileChain(
  { level, first, rest }: Extract<Expression, { kind: 'chain' }>,
  scope: Scope,
): Evaluate {
  const start = compile(first, scope)
  const links = rest.map(({ sign, operand }) => {
    return { sign, apply: level.operators[sign] as Apply, operand: compile(operand, scope) }
  })
  if (level.order === 'lazy') return lazyChain(start, links)
  const applied = (evaluation: Evaluation, link: Link, left: ErlangTerm, right: ErlangTerm) => {
    if (!spend(evaluation, 1)) return undefined
    const made = link.apply(evaluation, left, right)
    if (made !== undefined && evaluation.failure === undefined) return made
    return failTerm(evaluation, `${shown(left)} ${link.sign} ${shown(right)} has no value`)
  }
  if (level.order === 'right') return rightChain(start, links, applied)
  return (evaluation) => {
    let term = start(evaluation)
    for (const link of links) {
      const right = term === undefined ? undefined : link.operand(evaluation)
      if (term === undefined || right === undefined) return undefined
      term = applied(evaluation, link, term, right)
    }
    return term
  }
}

interface Link {
  readonly sign: string
  readonly apply: Apply
  readonly operand: Evaluate
}

/** `andalso` and `orelse`: what cannot change the value is not evaluated. */
function lazyChain(start: Evaluate, links: readonly Link[]): Evaluate {
  return (evaluation) => {
    let term = start(evaluation)
    for (const { sign, operand } of links) {
      if (term === undefined || !spend(evaluation, 1)) return undefined
      if (typeof term !== 'boolean') {
        return failTerm(evaluation, `${sign}: ${shown(term)} is neither true nor false`)
      }
      if (term === (sign === 'orelse')) return term
      term = operand(evaluation)
    }
    return term
  }
}

/** `++` and `--`: all operands from the left, then the operators from the right. */
function rightChain(
  start: Evaluate,
  links: readonly Link[],
  applied: (
    evaluation: Evaluation,
    link: Link,
    left: ErlangTerm,
    right: ErlangTerm,
  ) => ErlangTerm | undefined,
): Evaluate {
  return (evaluation) => {
    const terms: ErlangTerm[] = []
    for (const operand of [start, ...links.map((link) => link.operand)]) {
      const term = operand(evaluation)
      if (term === undefined) return undefined
      terms.push(term)
    }
    let right = terms.pop()
    for (let at = links.length - 1; at >= 0; at--) {
      if (right === undefined) return undefined
      right = applied(evaluation, links[at] as Link, terms[at] as ErlangTerm, right)
    }
    return right
  }
}

function compileCases(
  subject: Expression | undefined,
  clauses: readonly Clause[],
  scope: Scope,
): Evaluate {
  const value: Evaluate = subject === undefined ? () => true : compile(subject, scope)
  const choose = compileClauses(clauses, scope, subject === undefined ? 'if' : 'case')
  return (evaluation) => {
    const term = value(evaluation)
    return term === undefined ? undefined : choose(evaluation, term)
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
