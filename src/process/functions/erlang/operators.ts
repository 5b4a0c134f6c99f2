/**
 * The operators of a fun, weakest first, as in Erlang: `/` gives a float, `div` and `rem` truncate
 * towards zero, `=:=` compares the kind too. Undefined means that the operands do not fit.
 */
import { numericOf, shifted, termOf } from './numbers.ts'
import {
  compareTerms,
  type ErlangTerm,
  type Evaluation,
  isSame,
  listOf,
  type Result,
  remainder,
  sized,
  spend,
} from './terms.ts'

export type Apply = (evaluation: Evaluation, ...given: readonly ErlangTerm[]) => Result

export interface OperatorLevel {
  /** How a chain is grouped; `once` takes one operator, `lazy` leaves out what cannot count. */
  readonly order: 'left' | 'right' | 'once' | 'lazy'
  readonly operators: Readonly<Record<string, Apply>>
}

export const operatorLevels: readonly OperatorLevel[] = [
  { order: 'lazy', operators: { orelse: (_evaluation, _left, right) => right } },
  { order: 'lazy', operators: { andalso: (_evaluation, _left, right) => right } },
  {
    order: 'once',
    operators: {
      '==': comparison((order) => order === 0),
      '/=': comparison((order) => order !== 0),
      '=<': comparison((order) => order <= 0),
      '<': comparison((order) => order < 0),
      '>=': comparison((order) => order >= 0),
      '>': comparison((order) => order > 0),
      '=:=': isSame,
      '=/=': (evaluation, left, right) => !isSame(evaluation, left, right),
    },
  },
  { order: 'right', operators: { '++': joined, '--': without } },
  {
    order: 'left',
    operators: {
      '+': arithmetic(
        (left, right) => left + right,
        (left, right) => left + right,
      ),
      '-': arithmetic(
        (left, right) => left - right,
        (left, right) => left - right,
      ),
      bor: bits((left, right) => left | right),
      bxor: bits((left, right) => left ^ right),
      bsl: bits(shifted),
      bsr: bits((left, right) => shifted(left, -right)),
      or: logical((left, right) => left || right),
      xor: logical((left, right) => left !== right),
    },
  },
  {
    order: 'left',
    operators: {
      '*': arithmetic(
        (left, right) => left * right,
        (left, right) => left * right,
      ),
      '/': (_evaluation, left, right) => {
        const [one, other] = [numericOf(left), numericOf(right)]
        if (one === undefined || other === undefined || Number(other) === 0) return undefined
        return termOf(Number(one) / Number(other))
      },
      div: bits((left, right) => (right === 0n ? undefined : left / right)),
      rem: bits((left, right) => (right === 0n ? undefined : left % right)),
      band: bits((left, right) => left & right),
      and: logical((left, right) => left && right),
    },
  },
]

const zero_minus = operatorLevels[4]?.operators['-'] as Apply

export const prefixOperators: Readonly<Record<string, Apply>> = {
  '+': (_evaluation, operand) => (numericOf(operand) === undefined ? undefined : operand),
  '-': (evaluation, operand) => zero_minus(evaluation, 0, operand),
  not: (_evaluation, operand) => (typeof operand === 'boolean' ? !operand : undefined),
  bnot: (_evaluation, operand) => {
    const integer = numericOf(operand)
    return typeof integer === 'bigint' ? termOf(~integer) : undefined
  },
}

function comparison(holds: (order: number) => boolean): Apply {
  return (evaluation, left, right) => holds(compareTerms(evaluation, left, right, false))
}

function logical(apply: (left: boolean, right: boolean) => boolean): Apply {
  return (_evaluation, left, right) =>
    typeof left === 'boolean' && typeof right === 'boolean' ? apply(left, right) : undefined
}

/** On two integers exactly, else on doubles. */
function arithmetic(
  onDoubles: (left: number, right: number) => number,
  onIntegers: (left: bigint, right: bigint) => bigint,
): Apply {
  return (_evaluation, left, right) => {
    if (Number.isSafeInteger(left) && Number.isSafeInteger(right)) {
      const made = onDoubles(left as number, right as number)
      // The exact result too is safe where the double is.
      if (Number.isSafeInteger(made)) return made === 0 ? 0 : made
    }
    const [one, other] = [numericOf(left), numericOf(right)]
    if (one === undefined || other === undefined) return undefined
    const is_exact = typeof one === 'bigint' && typeof other === 'bigint'
    return termOf(is_exact ? onIntegers(one, other) : onDoubles(Number(one), Number(other)))
  }
}

function bits(apply: (left: bigint, right: bigint) => bigint | undefined): Apply {
  return (_evaluation, left, right) => {
    const [one, other] = [numericOf(left), numericOf(right)]
    if (typeof one !== 'bigint' || typeof other !== 'bigint') return undefined
    const made = apply(one, other)
    return made === undefined ? undefined : termOf(made)
  }
}

function joined(evaluation: Evaluation, left: ErlangTerm, right: ErlangTerm): Result {
  if (typeof left === 'string' && typeof right === 'string') return sized(evaluation, left + right)
  const [one, other] = [listOf(evaluation, left), listOf(evaluation, right)]
  return one === undefined || other === undefined
    ? undefined
    : sized(evaluation, [...one, ...other])
}

/** The left list without the first occurrence of each item of the right one. */
function without(evaluation: Evaluation, left: ErlangTerm, right: ErlangTerm): Result {
  const left_items = listOf(evaluation, left)
  const taken = listOf(evaluation, right)
  if (left_items === undefined || taken === undefined) return undefined
  const made = [...left_items]
  for (const item of taken) {
    if (!spend(evaluation, made.length / 64)) return undefined
    const at = made.findIndex((one) => isSame(evaluation, one, item))
    if (evaluation.failure !== undefined) return undefined
    if (at !== -1) made.splice(at, 1)
  }
  return remainder(left, made)
}
