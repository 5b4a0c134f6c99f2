/**
 * `$.base64_encode` and the digests `$.md5` to `$.sha512`, of UTF-8 bytes. `_hex` gives lower-case
 * hex; the plain form gives one character per byte, U+0000 to U+00FF, and stays bytes as the whole
 * argument of another of these functions. The only file below src/process that imports node:crypto.
 */
import { createHash } from 'node:crypto'
import { steps_passed, takeSteps } from '../definition-limits.ts'
import {
  type Expansion,
  expectText,
  failWith,
  joinParts,
  type Part,
  type TemplateCursor,
  type Term,
} from '../templates/parser.ts'
import type { FunctionExample, FunctionKind } from './function.ts'

const ab_hex: Readonly<Record<string, string>> = {
  md5: '187ef4436122d1cc2f40dc2b92f0eba0',
  sha1: 'da23614e02469a0d7c7bd1bdab5c9c474b1904dc',
  sha224: 'db3cda86d4429a1d39c148989566b38f7bda0156296bd364ba2f878b',
  sha256: 'fb8e20fc2e4c3f248c60c39bd652f3c1347298bb977b8b4d5903b85055620603',
  sha384: [
    'c7be03ba5bcaa384727076db0018e99248e1a6e8bd1b9ef5',
    '8a9ec9dd4eeebb3f48b836201221175befa74ddc3d35afdd',
  ].join(''),
  sha512: [
    '2d408a0717ec188158278a796c689044361dc6fdde28d6f04973b80896e18239',
    '75cdbf12eb63f9e0591328ee235d80e9b5bf1aa6a44f4617ff3caf6400eb172d',
  ].join(''),
}

export const digestFunctions: readonly FunctionKind[] = [
  kind('base64_encode', (argument) => textTerm(argument, 'base64'), [
    { text: '$.base64_encode(hello)', gives: 'aGVsbG8=' },
    { text: '$.base64_encode({{a}}:{{b}})', data: { a: 'ї', b: 1 }, gives: '0Zc6MQ==' },
    { text: '$.base64_encode($.md5(ab))', gives: 'GH70Q2Ei0cwvQNwrkvDroA==' },
  ]),
  ...Object.entries(ab_hex).flatMap(([name, hex]) => [
    kind(name, (argument) => digestTerm(name, argument), [
      {
        text: `$.${name}({{a}}b)`,
        data: { a: 'a' },
        gives: Buffer.from(hex, 'hex').toString('latin1'),
      },
    ]),
    kind(`${name}_hex`, (argument) => textTerm(digestBytes(name, argument), 'hex'), [
      { text: `$.${name}_hex(ab)`, gives: hex },
      { text: `$.${name}_hex({{a}}b)`, data: { a: 'a' }, gives: hex },
    ]),
  ]),
]

type BytesTerm = (expansion: Expansion) => Buffer | undefined

/** The bytes of a plain digest, by the term that gives them as text. */
const bytes_of = new WeakMap<Term, BytesTerm>()

function kind(
  name: string,
  makeTerm: (argument: BytesTerm) => Term,
  examples: readonly FunctionExample[],
): FunctionKind {
  return {
    name,
    syntax: [`$.${name}(text)`],
    result: 'string',
    examples,
    read: (cursor) => makeTerm(readBytes(cursor)),
  }
}

function digestTerm(name: string, argument: BytesTerm): Term {
  const bytes = digestBytes(name, argument)
  const term = textTerm(bytes, 'latin1')
  bytes_of.set(term, bytes)
  return term
}

function digestBytes(name: string, argument: BytesTerm): BytesTerm {
  return (expansion) => {
    const bytes = argument(expansion)
    if (bytes === undefined) return undefined
    if (takeSteps(expansion.context.steps, bytes.length / 32)) {
      return createHash(name).update(bytes).digest()
    }
    return failWith(expansion, 'convert', `$.${name}: ${steps_passed}`)
  }
}

function textTerm(bytes: BytesTerm, encoding: BufferEncoding): Term {
  return (expansion) => bytes(expansion)?.toString(encoding)
}

/** Parses the argument and consumes the closing parenthesis. */
function readBytes(cursor: TemplateCursor): BytesTerm {
  const parts: readonly Part[] = cursor.parts(')')
  expectText(cursor, ')')
  const [only] = parts
  const bytes = parts.length === 1 && typeof only === 'function' ? bytes_of.get(only) : undefined
  if (bytes !== undefined) return bytes
  return (expansion) => {
    const text = joinParts(parts, expansion)
    return text === undefined ? undefined : Buffer.from(text)
  }
}
