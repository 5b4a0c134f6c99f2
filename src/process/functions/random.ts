/**
 * `$.random`: a double in [0, 1), or a whole number of a range that includes both ends: from 0 to a
 * maximum that is not negative, or from a negative number to -1.
 */
import {
  expectText,
  failWith,
  skipSpaces,
  type TemplateCursor,
  type Term,
} from '../templates/parser.ts'
import { type FunctionKind, numberResult, readWholeNumber } from './function.ts'

export const randomFunction: FunctionKind = {
  name: 'random',
  syntax: ['$.random()', '$.random(max)', '$.random(min,max)'],
  result: 'number',
  fails_when_run: true,
  examples: [
    { text: '$.random()', gives: 0.5 },
    { text: '$.random(10)', gives: 5 },
    { text: '$.random(0)', gives: 0 },
    { text: '$.random(-10)', gives: -5 },
    { text: '$.random(50, {{max}})', data: { max: 100 }, gives: 75 },
  ],
  read: readRandom,
}

function readRandom(cursor: TemplateCursor): Term {
  skipSpaces(cursor)
  if (cursor.text[cursor.at] === ')') {
    cursor.at++
    return (expansion) => numberResult(expansion, expansion.context.fraction())
  }
  const first = readWholeNumber(cursor, ',)')
  if (cursor.text[cursor.at] !== ',') {
    expectText(cursor, ')')
    return (expansion) => {
      const bound = first(expansion)
      if (expansion.failure !== undefined) return undefined
      const fraction = expansion.context.fraction()
      return numberResult(
        expansion,
        bound < 0 ? draw(fraction, bound, -1) : draw(fraction, 0, bound),
      )
    }
  }
  cursor.at++
  const second = readWholeNumber(cursor, ')')
  expectText(cursor, ')')
  return (expansion) => {
    const min = first(expansion)
    const max = second(expansion)
    if (expansion.failure !== undefined) return undefined
    if (max < min || !Number.isSafeInteger(max - min + 1)) {
      return failWith(expansion, 'convert', `$.random: from ${min} to ${max} is no range`)
    }
    return numberResult(expansion, draw(expansion.context.fraction(), min, max))
  }
}

function draw(fraction: number, min: number, max: number): number {
  return Math.min(min + Math.floor(fraction * (max - min + 1)), max)
}
