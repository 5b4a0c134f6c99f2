/**
 * Hostile input to the parts that read it, called directly: JSON beside a reference parser, process
 * definitions, templates with their functions, and regular expressions. Each has to come to an end
 * within its bounds, and to answer a value or a mistake: what it throws beside a Fault is a bug.
 */
import { parseJson, stringifyJson } from '../../src/codec/json.ts'
import { parseExact } from '../../src/codec/json-exact.ts'
import { isFault } from '../../src/core/faults.ts'
import { limitsWith } from '../../src/core/limits.ts'
import type { JsonObject, JsonValue } from '../../src/core/model.ts'
import { compileProcess } from '../../src/process/compile-process.ts'
import { steps_max } from '../../src/process/definition-limits.ts'
import { functionTable } from '../../src/process/functions/table.ts'
import { logicTable } from '../../src/process/logics/table.ts'
import { compilePattern } from '../../src/process/pattern.ts'
import type { Dice } from './fuzz-ops.ts'
import { mutated } from './fuzz-requests.ts'
import { parseReference } from './json-reference.ts'
import { contextOf, expanded } from './logic-context.ts'

const bounds = { nesting_max: 12, values_max: 300 }
const limits = limitsWith()
/** Of the time of the processor: a few times what the longest takes that is within the bounds. */
const used_ms_max = 1_000

/** The same value, or the same refusal, by every parser. */
export function jsonAtRandom(dice: Dice): string | undefined {
  const whole = Buffer.from(jsonText(dice, 0))
  const text = (dice.chance(0.5) ? whole : mutated(dice, whole)).toString()
  const [reference, ...others] = [parseReference, parseJson, parseExact].map((parse) => {
    try {
      return stringifyJson(parse(text, bounds))
    } catch (error) {
      if (isFault(error)) return error.message
      throw error
    }
  })
  const at = others.findIndex((other) => other !== reference)
  return at === -1 ? undefined : `${JSON.stringify(text)}: ${others[at]}, not ${reference}`
}

function jsonText(dice: Dice, level: number): string {
  const deep = level < 6 && dice.chance(0.6)
  const space = dice.pick(['', '', ' ', '\n', '\t\r'])
  const items = (one: () => string): string =>
    Array.from({ length: dice.below(4) }, one).join(`${space},`)
  if (deep && dice.chance(0.5)) return `[${space}${items(() => jsonText(dice, level + 1))}]`
  if (deep)
    return `{${items(() => `${textAtRandom(dice)}${space}:${jsonText(dice, level + 1)}`)}${space}}`
  return dice.chance(0.5)
    ? dice.pick([
        '0',
        '-0',
        '1.10',
        '1e400',
        '-1E-7',
        '12345678901234567890',
        '0.1',
        '5e-324',
        '1e21',
        '9007199254740993',
        '00',
        '.5',
        '+1',
        'NaN',
      ])
    : dice.pick(['null', 'true', 'false', textAtRandom(dice)])
}

function textAtRandom(dice: Dice): string {
  const pieces = [
    'a',
    '__proto__',
    '\\u0041',
    '\\ud83d\\ude00',
    '😀',
    '\\n',
    '\\/',
    '\\ud800',
    'é',
    '\u2028',
    '\\"',
    '\\u00',
    '\x7f',
    'toJSON',
  ]
  return `"${Array.from({ length: dice.below(4) }, () => dice.pick(pieces)).join('')}"`
}

const kinds = [...logicTable.map(({ type }) => type), 'nothing']
const ids = ['a', 'b', 'c', 'd', '', '__proto__']

/** A definition compiles, or its mistakes are named. */
export function definitionAtRandom(dice: Dice): string | undefined {
  const value = (level = 0): JsonValue =>
    dice.pick<() => JsonValue>([
      () => dice.pick(ids),
      () => dice.pick([0, 1, -1, 1e9, 0.5]),
      () => templateText(dice),
      () => dice.pick([null, true, false]),
      () => (level > 3 ? [] : [value(level + 1), value(level + 1)]),
      () => (level > 3 ? {} : { a: value(level + 1), [dice.pick(ids)]: value(level + 1) }),
    ])()
  const logic = (): JsonObject => ({
    type: dice.pick(kinds),
    to_node_id: dice.pick(ids),
    ...(dice.chance(0.5)
      ? {
          extra: { a: templateText(dice), b: value() },
          extra_type: { a: dice.pick(['string', 'number', 'object', 'x']) },
        }
      : {}),
    ...(dice.chance(0.3)
      ? {
          conditions: [
            {
              param: templateText(dice),
              const: value(),
              fun: dice.pick(['eq', 'not_eq', 'regexp', 'more', 'x']),
              cast: dice.pick(['string', 'number', 'x']),
            },
          ],
        }
      : {}),
    ...(dice.chance(0.3)
      ? {
          conv_id: value(),
          mode: value(),
          ref: value(),
          data: value(),
          url: value(),
          src: value(),
          lang: 'js',
        }
      : {}),
    ...(dice.chance(0.2)
      ? { [dice.pick(['extra', 'conditions', 'err_node_id', 'data_type', 'url'])]: value() }
      : {}),
  })
  const node = (id: string, at: number): JsonValue => ({
    id,
    obj_type: at === 0 ? 1 : dice.pick([0, 0, 2, 3, -1]),
    title: 'x',
    condition: {
      logics: Array.from({ length: dice.below(4) }, logic) as JsonValue[],
      semaphors: dice.chance(0.3)
        ? [
            {
              type: dice.pick(['time', 'count', 'x']),
              value: value(),
              dimension: dice.pick(['sec', 'day', 'x']),
              to_node_id: dice.pick(ids),
            },
          ]
        : [],
    },
    ...(dice.chance(0.1) ? { options: value() } : {}),
  })
  const definition: JsonObject = {
    ...{
      obj_type: 1,
      obj_id: dice.pick<JsonValue>([1, 'x', null, 1.5]),
      title: 'x',
      status: dice.pick(['active', 'paused', 'x']),
      conv_type: 'process',
    },
    params: dice.chance(0.3)
      ? [
          {
            name: dice.pick(ids),
            type: dice.pick(['string', 'number', 'x']),
            descr: '',
            flags: dice.chance(0.5) ? ['required'] : value(),
            regex: patternText(dice),
            regex_error_text: '',
          },
        ]
      : [],
    scheme: { nodes: ids.slice(0, 1 + dice.below(ids.length)).map(node) },
  }
  let given = definition
  if (dice.chance(0.4)) {
    try {
      const text = mutated(dice, Buffer.from(stringifyJson(definition))).toString()
      const read = parseJson(text)
      if (typeof read !== 'object' || read === null || Array.isArray(read)) return undefined
      given = read as JsonObject
    } catch (error) {
      if (isFault(error)) return undefined
      throw error
    }
  }
  return inTime(`definition ${stringifyJson(given)}`, () => {
    const { graph, mistakes } = compileProcess(given, limits)
    return graph !== undefined || mistakes.length > 0
      ? undefined
      : 'neither a process nor a mistake'
  })
}

const function_names = functionTable.map(({ name }) => name)

function templateText(dice: Dice, level = 0): string {
  const inner = (): string => (level > 3 ? 'a' : templateText(dice, level + 1))
  const piece = (): string =>
    dice.pick([
      () =>
        `{{${dice.pick(['a', 'a.b', 'a[0]', 'root.ref', 'a.__proto__', 'a.length', '', 'a[{{b}}]', 'list[-1]'])}}}`,
      () => `{{${inner()}}}`,
      () => `$.${dice.pick(function_names)}(${inner()}${dice.pick(['', ',', `,${inner()}`])})`,
      () =>
        `$.map(${dice.pick(['fun(a)-> a end', 'fun(a, b)-> a * b end, ', 'fun(X)-> X + 1 end, '])}${inner()})`,
      () => `$.math(${inner()}${dice.pick(['+', '*', '/', '^', '-', '('])}${inner()})`,
      () =>
        dice.pick([
          'a',
          '1',
          '{{',
          '}}',
          '$.',
          '(',
          ')',
          '"',
          '\\',
          '%Y',
          ',',
          ' ',
          '9'.repeat(40),
          '😀',
          '\ud800',
          'é',
        ]),
    ])()
  return Array.from({ length: 1 + dice.below(3) }, piece).join('')
}

const task_data =
  '{"a":{"b":[1,2,{"c":"x"}]},"b":"1e999","list":[3,1,2],"__proto__":{"x":1.10},"text":"' +
  'ab'.repeat(200) +
  '"}'

/** A template is expanded to a value, or refused with a mistake. */
export function templateAtRandom(dice: Dice): string | undefined {
  const whole = Buffer.from(templateText(dice))
  const text = (dice.chance(0.6) ? whole : mutated(dice, whole)).toString()
  return inTime(`template ${JSON.stringify(text)}`, () => {
    expanded(text, contextOf(task_data).doc.text)
    return undefined
  })
}

function patternText(dice: Dice, level = 0): string {
  const inner = (): string => (level > 3 ? 'a' : patternText(dice, level + 1))
  const piece = (): string =>
    dice.pick([
      () => `(${dice.pick(['', '?:', '?=', '?!', '?<=', '?>', '?<n>', '?i)'])}${inner()})`,
      () => `${inner()}${dice.pick(['*', '+', '?', '{2,9}', '{1000}', '*?', '++', '{,}'])}`,
      () => `(${inner()}|${inner()})`,
      () =>
        dice.pick([
          'a',
          'ab',
          '.',
          '\\d',
          '\\w',
          '[a-z]',
          '[^a]',
          '^',
          '$',
          '\\b',
          '\\1',
          '\\p{L}',
          '[[:alpha:]]',
          '[',
          '\\',
          'é',
          '😀',
          '\\Q',
          '(*',
        ]),
    ])()
  return Array.from({ length: 1 + dice.below(3) }, piece).join('')
}

const texts = [
  'a'.repeat(5_000),
  'ab'.repeat(2_500),
  `${'a'.repeat(5_000)}!`,
  '',
  '\n'.repeat(500),
  '😀'.repeat(1_000),
]

/** A pattern is searched for in the time of its steps, or refused. */
export function patternAtRandom(dice: Dice): string | undefined {
  const source = patternText(dice)
  const text = dice.pick(texts)
  return inTime(
    `pattern ${JSON.stringify(source)} in ${text.length} characters ${text.slice(0, 3)}`,
    () => {
      const pattern = compilePattern(source)
      if (typeof pattern !== 'function') return undefined
      const steps = { left: steps_max }
      const found = pattern(text, steps)
      return steps.left < 0 && found !== undefined ? 'more steps than there are' : undefined
    },
  )
}

function inTime(says: string, run: () => string | undefined): string | undefined {
  const before = process.cpuUsage()
  let mistake: string | undefined
  try {
    mistake = run()
  } catch (error) {
    if (!isFault(error)) throw new Error(says, { cause: error })
  }
  const { user, system } = process.cpuUsage(before)
  const used_ms = (user + system) / 1_000
  if (mistake !== undefined) return `${says}: ${mistake}`
  return used_ms > used_ms_max ? `${says}: took ${used_ms} ms` : undefined
}
