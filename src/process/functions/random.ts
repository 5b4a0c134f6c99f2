/**
 * `$.random`: a double in [0, 1), or a whole number of a range with both ends in it. Chance comes
 * from the scope. `$.random(0)` is 0, and below zero the range is mirrored.
 */
import { expectText, failWith, type Source, skipSpaces, type Term } from '../templates/parser.ts'
import { type FunctionKind, numberResult, readWholeNumber } from './function.ts'

export const randomFunction: FunctionKind = {
  name: 'random',
  syntax: ['$.random()', '$.random(max)', '$.random(min,max)'],
  result: 'number',
  examples: [
    { text: '$.random()', gives: 0.5 },
    { text: '$.random(10)', gives: 6 },
    { text: '$.random(0)', gives: 0 },
    { text: '$.random(-10)', gives: -6 },
    { text: '$.random(50, {{max}})', data: { max: 100 }, gives: 75 },
  ],
  read: readRandom,
}

function readRandom(source: Source): Term {
  skipSpaces(source)
  if (source.text[source.at] === ')') {
    source.at++
    return (run) => numberResult(run, run.scope.fraction())
  }
  const first = readWholeNumber(source, ',)')
  if (source.text[source.at] !== ',') {
    expectText(source, ')')
    return (run) => {
      const bound = first(run)
      if (run.failure !== undefined || bound === 0) return numberResult(run, bound)
      const drawn = draw(run.scope.fraction(), 1, Math.abs(bound))
      return numberResult(run, bound < 0 ? -drawn : drawn)
    }
  }
  source.at++
  const second = readWholeNumber(source, ')')
  expectText(source, ')')
  return (run) => {
    const min = first(run)
    const max = second(run)
    if (run.failure !== undefined) return undefined
    if (max < min || !Number.isSafeInteger(max - min + 1)) {
      return failWith(run, 'convert', `$.random: from ${min} to ${max} is no range`)
    }
    return numberResult(run, draw(run.scope.fraction(), min, max))
  }
}

function draw(fraction: number, min: number, max: number): number {
  return Math.min(min + Math.floor(fraction * (max - min + 1)), max)
}
