/**
 * Regular expressions: what the backtracking engine finds and refuses, that it agrees with the
 * linear engine on what both take, and that no pattern and no text make it run long.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { RE2JS } from 're2js'
import { openEngine } from '../src/index.ts'
import { parsePattern } from '../src/process/backtracking/parse.ts'
import { compileProgram } from '../src/process/backtracking/program.ts'
import { search } from '../src/process/backtracking/search.ts'
import { type Steps, steps_max } from '../src/process/definition-limits.ts'
import {
  compiledIn,
  compilePattern,
  emptySlot,
  literalPattern,
  type Slot,
} from '../src/process/pattern.ts'
import { runLogic } from './support/logic-context.ts'

/** [pattern, texts in which it is found, texts in which it is not] */
const patterns: readonly (readonly [
  pattern: string,
  found: readonly string[],
  not_found: readonly string[],
])[] = [
  // Look-around.
  ['^(?=.*[A-Z])(?=.*\\d).{8,}$', ['Secret123'], ['secret123', 'Secret', 'Secret12\nx']],
  ['^(?!.*(?:foo|bar))', ['baz'], ['a bar', 'foo']],
  ['foo(?=bar)', ['foobar'], ['foobaz', 'fo']],
  ['foo(?!bar)', ['foobaz', 'foo'], ['foobar']],
  ['(?<=foo)bar', ['foobar'], ['bar', 'fobar']],
  ['(?<!foo)bar(?=$)', ['bar', 'fobar'], ['foobar', 'bars']],
  ['(?<=a|bc)(?=d)d', ['ad', 'bcd'], ['cd', 'd']],
  ['(?<=(?<!x)a)b(?!c)', ['ab', 'yab'], ['xab', 'abc']],
  ['(?<=^|,)(?=b)', ['b', 'a,b'], ['ab']],
  ['(?<=😀)(?=a)', ['😀a'], ['a', '😁a']],
  ['(?<=(a)b)\\1', ['aba'], ['abb']],
  ['(?=(a+))a*b\\1', ['aaabac', 'aabaa'], ['ba']],
  ['(?!(a)b)\\1?c', ['c'], ['ab']],
  // Back-references.
  ['(.)\\1', ['aa', 'xyyx', '😀😀'], ['ab', '', '😀😁']],
  ['^(?P<q>[\'"]).*(?P=q)$', ['"a"', "'b'"], ['"a\'', '"']],
  ['^(?<w>\\w+) \\k<w>$', ['go go'], ['go gone']],
  ["^(?'w'\\w+) \\k'w' \\k{w} \\g{w}$", ['a a a a'], ['a a a b']],
  ['^(a)(b)\\g{-1}\\g1\\g{2}$', ['abbab'], ['ababb']],
  ['(?i)^(a)\\1$', ['aA', 'AA'], ['ab']],
  ['^(a)|b\\1$', ['a'], ['b', 'ba']],
  ['^(a\\1?){3}$', ['aaa', 'aaaa', 'aaaaaa'], ['aa']],
  ['^(?:(a)|b)*\\1$', ['aba'], ['bb', 'abb']],
  ['^(a)(?:b)\\101$', ['abA'], ['aba']],
  // Atomic groups and possessive repeats.
  ['^(?>a+)ab', [], ['aaab']],
  ['^a++b', ['aab'], []],
  ['^a*+a', [], ['aaa']],
  ['^(?:ab?+)+c', ['abac'], ['abb']],
  ['^a{1,2}+a$', ['aaa'], ['aa']],
  ['^(?>a|ab)c', ['ac'], ['abc']],
  // The rest of the syntax, in the backtracking engine by its look-ahead.
  ['(?=)^[[:alpha:]]+[^\\d\\s]$', ['ab', 'aб'], ['a1', '1a']],
  ['(?=)^\\pL+\\p{Greek}$', ['aбα'], ['a1α']],
  ['(?=)^\\x41\\x{1F600}\\t\\.\\/[]a-]$', ['A😀\t./]', 'A😀\t./-'], ['A😀\t./b']],
  ['(?=)\\Aa\\Z', ['a', 'a\n'], ['a\n\n', 'ba']],
  ['(?=)a\\z', ['ba'], ['a\n']],
  ['(?=)a$', ['a', 'a\n'], ['a\n\n', 'a\r\n']],
  ['a$', ['a', 'a\n'], ['a\n\n', 'a\nb']],
  ['^$', ['', '\n'], ['\n\n']],
  ['^a$|b\\z', ['a', 'b'], ['b\n']],
  ['(?m)^a$', ['a\nb', 'b\na\n'], ['ab\n']],
  ['^(?!.*\n)a$', ['a'], ['a\n']],
  ['(?<=a)$', ['a\n'], ['b\n']],
  ['(?m)(?=)^b$', ['a\nb\nc'], ['ab']],
  ['(?=)a.b', ['a\rb', 'a😀b'], ['a\nb']],
  ['(?s)(?=)a.b', ['a\nb'], ['ab']],
  ['(?i)(?=)straße|K', ['STRAßE', 'k', '\u212a'], ['x']],
  ['(?=)^a(?i)b(?-i)c|D$', ['aBc', 'D'], ['Abc', 'aBC', 'd']],
  ['(?=)^(?i:a)b$', ['Ab'], ['AB']],
  ['(?=)^(?U)a+(?#greedy is lazy)(b?)', ['aab'], ['b']],
  ['(?=)\\bcat\\b', ['a cat.'], ['concat', 'cats']],
  ['(?=)\\Bat', ['cat'], ['at']],
  ['(?=)^\\Qa.b\\E+$', ['a.b', 'a.bb'], ['axb', 'a.ba.b']],
  ['(?=)^x{2}y{1,}z{,2}$', ['xxy', 'xxyyzz'], ['xyz', 'xxyzzz']],
  ['(?=)a{b}{', ['a{b}{'], ['ab']],
  ['(?=)^(a?b??)*$', ['', 'abba'], ['c']],
  ['(?=)^(?:|a)+$', ['', 'aaa'], ['b']],
  ['(?=)^(?:a*)*b', ['aab', 'b'], ['aac']],
  ['(?=)', ['', 'a'], []],
  ['(?!)', [], ['', 'a']],
]

const fresh = (): Steps => ({ left: steps_max })

for (const [pattern, found, not_found] of patterns) {
  test(`pattern ${pattern}`, () => {
    const compiled = compilePattern(pattern)
    if (typeof compiled !== 'function') assert.fail(compiled.mistake)
    for (const text of found) assert.equal(compiled(text, fresh()), true, JSON.stringify(text))
    for (const text of not_found) assert.equal(compiled(text, fresh()), false, JSON.stringify(text))
  })
}

const mistakes: readonly (readonly [pattern: string, mistake: string])[] = [
  ['(a', 'missing ")" of the group at character 1'],
  ['a)', '")" closes nothing at character 2'],
  ['a(?=b', 'missing ")" of the group at character 2'],
  ['[a', 'missing "]" at character 1'],
  ['x[z-a]', 'invalid character class range: `z-a` at character 2'],
  ['*a', 'nothing to repeat at character 1'],
  ['(?=)a(?i)*', 'nothing to repeat at character 10'],
  ['a**', 'a repeat of a repeat at character 2'],
  ['a{3,2}(?=)', '{3,2} repeats from more to less at character 2'],
  ['a{1001}', '{1001} is more than 1000 times at character 2'],
  ['(?:a{1000}){3}(?=)', 'it repeats too much'],
  ['(?:(?:a{1000}){1000}){1000}(?=)', 'it repeats too much'],
  ['\\2(a)', 'there is no group 2 at character 1'],
  ['(a)\\k<b>', 'there is no group b at character 4'],
  ['(a)\\g{-2}', 'there is no group 0 at character 4'],
  ['(?<n>a)(?<n>b)\\1', 'a second group n at character 8'],
  ['(?<=a*(b))c', 'a look-behind has no fixed length at character 1'],
  ['(a)(?<=\\1)', 'a look-behind has no fixed length at character 4'],
  ['a(?R)', '(?R)… is not taken at character 2'],
  ['(a)?(?(1)b)', '(?(1… is not taken at character 5'],
  ['(*FAIL)', '(*FA… is not taken at character 1'],
  ['(?x) a', '(?x)… is not taken at character 1'],
  ['a\\h', 'invalid escape sequence: `\\h` at character 2'],
  ['(?=a)\\', 'a "\\" stands alone at character 6'],
  ['('.repeat(1_000), 'missing ")" of the group at character 1000'],
  ['(?=a)'.repeat(201), 'the pattern is longer than 1000 characters'],
]

for (const [pattern, mistake] of mistakes) {
  test(`refuses the pattern ${pattern.slice(0, 30)}`, () => {
    const compiled = compilePattern(pattern)
    const told = typeof compiled === 'function' ? 'no mistake' : compiled.mistake
    assert.ok(told.endsWith(mistake), told)
  })
}

const a = 'a'.repeat(100_000)
/** What no automaton of fewer than 2^20 states finds. */
const coins = Array.from({ length: 50_000 }, (_, at) => 'ab'[((at * at * 7919) % 97) % 2]).join('')

/** [pattern, text]: what takes more steps than the limit. */
const endless: readonly (readonly [pattern: string, text: string])[] = [
  ['(a+)+\\1b', 'a'.repeat(40)],
  ['^(?=(a+))*(a|aa)+$(?<=b)', `${'a'.repeat(60)}c`],
  ['(?=(a*)*b)', a],
  ['(x+x+)+(?=y)', 'x'.repeat(60)],
  ['(?=.*b)', a],
  ['(.*)(.*)(.*)\\1\\2b', a],
  ['(?i)(.*)\\1B', a],
  ['(?<=[^x]{1000})(?<=[^y]{900})[bc]', a],
  ['(?<=(.{900}))(?=\\1b)', a],
  ['^(?:.*(?=.*)){20}b', 'é😀'.repeat(30_000)],
  ['(?>(?>(?>(?=(a))a)+)+b)', a],
  [`(?>${'(?>'.repeat(150)}(a)*${')'.repeat(150)}b)`, a],
  ['(?!(?!(?!(?:a|a)*b))).', 'a'.repeat(5_000)],
  ['(a|b)*a(a|b){300}c', `c${coins}`],
]

for (const [pattern, text] of endless) {
  test(`the steps of ${pattern.slice(0, 40)} are limited`, () => {
    const compiled = compilePattern(pattern)
    if (typeof compiled !== 'function') assert.fail(compiled.mistake)
    const before = process.memoryUsage().rss
    const started = performance.now()
    assert.equal(compiled(text, fresh()), undefined)
    assert.ok(performance.now() - started < 10_000)
    assert.ok(process.memoryUsage().rss - before < 300 * 2 ** 20)
    assert.equal(compiled('x'.repeat(100_001), fresh()), false)
  })
}

test('compiled patterns are dropped where they take too much memory, and compiled again', () => {
  const MiB = 2 ** 20
  let compiled = 0
  const slots = Array.from({ length: 100 }, () => emptySlot<number>())
  const run = (slot: number, bytes: number, char_bytes: number, chars: number): number =>
    compiledIn(slots[slot] as Slot<number>, () => ({ run: ++compiled, bytes, char_bytes }), chars)
  assert.deepEqual([run(0, MiB, 0, 9), run(0, MiB, 0, 9)], [1, 1])
  for (let slot = 1; slot < 100; slot++) run(slot, MiB, 0, 9)
  assert.deepEqual([compiled, run(99, MiB, 0, 9), run(0, MiB, 0, 9)], [100, 100, 101])
  assert.deepEqual([run(1, 9, MiB, 1), run(1, 9, MiB, 1), run(1, 9, MiB, 1)], [102, 102, 103])
})

test('a pattern of the same sets many times compiles each once', () => {
  const { sets } = parsePattern(`(?=a)${'\\p{L}[a-z]'.repeat(90)}(?i)[a-z]`)
  assert.deepEqual([...sets.keys()], [':\\p{L}', ':[a-z]', 'i:[a-z]'])
})

test('a condition whose pattern takes too many steps fails the logic', () => {
  const condition = { param: 'a', fun: 'regexp', const: '(a+)+\\1b', cast: 'string' }
  const logic = { type: 'go_if_const', to_node_id: 'a', conditions: [condition] }
  assert.deepEqual(runLogic(JSON.stringify(logic), { a: 'a'.repeat(40) }), {
    command: 'fail',
    kind: 'go_if_const',
    error_type: 'software',
    tag: 'go_if_const_executing_error',
    description: 'a pattern takes more than 1000000 steps',
    err_node_id: undefined,
  })
})

test('a task waits as failed, and a create is refused, where a pattern takes too many steps', async () => {
  await using engine = await openEngine(':memory:')
  const regex = '(a+)+\\1b'
  const condition = { param: 'a', fun: 'regexp', const: regex, cast: 'string' }
  const logics = [
    { type: 'go_if_const', to_node_id: 'end', conditions: [condition] },
    { type: 'go', to_node_id: 'end' },
  ]
  const nodes = [
    { id: 'start', obj_type: 1, condition: { logics } },
    { id: 'end', obj_type: 2, options: { save_task: true } },
  ]
  const params = [{ name: 'a', type: 'string', flags: ['input'], regex }]
  await engine.processes.put({ obj_id: 1, scheme: { nodes } })
  await engine.processes.put({ obj_id: 2, params, scheme: { nodes } })
  const data = { a: 'a'.repeat(40) }
  await engine.create({ conv_id: 1, ref: 'r', data })
  const task = await engine.task({ conv_id: 1, ref: 'r' })
  assert.equal(task?.status, 'failed')
  assert.equal(task.status_details?.tag, 'go_if_const_executing_error')
  assert.equal((await engine.create({ conv_id: 2, data })).proc, 'wrong_validate_params')
})

/** Random patterns: of one of the atoms, in groups with one of the openings. */
function sources(atoms: readonly string[], openings: readonly string[]): fc.Arbitrary<string> {
  return fc.letrec<{ pattern: string; part: string }>((tie) => ({
    part: fc.oneof(
      { depthSize: 'small' },
      fc.constantFrom(...atoms),
      fc.tuple(tie('pattern'), fc.constantFrom(...openings)).map(([of, how]) => `${how}${of})`),
      fc
        .tuple(tie('pattern'), fc.constantFrom('*', '+', '?', '*?', '+?', '{2}', '{0,2}', '{1,}?'))
        .map(([of, repeat]) => `(?:${of})${repeat}`),
      fc.tuple(tie('pattern'), tie('pattern')).map(([one, other]) => `(?:${one}|${other})`),
    ),
    pattern: fc.array(tie('part'), { minLength: 1, maxLength: 3 }).map((parts) => parts.join('')),
  })).pattern
}

const texts = fc
  .array(fc.constantFrom('a', 'b', 'A', 'é', '😀', '\n', '1', ' ', '+'), { maxLength: 12 })
  .map((chars) => chars.join(''))

const runs = process.env.CONVEYOR_SLOW === '1' ? 10_000 : 500

/** Compares the backtracking engine with another one, which throws at what it does not take. */
function compareWith(
  source: fc.Arbitrary<string>,
  other: (source: string) => (text: string) => boolean,
) {
  let compared = 0
  fc.assert(
    fc.property(source, texts, (source, text) => {
      let found: boolean | undefined
      let expected: (text: string) => boolean
      try {
        expected = other(source)
        found = search(compileProgram(parsePattern(source)), text, fresh())
      } catch {
        return
      }
      if (found === undefined) return
      compared++
      assert.equal(found, expected(text))
    }),
    { numRuns: runs },
  )
  assert.ok(compared > runs * 0.3, `${compared}`)
}

const common = [
  'a',
  'b',
  'A',
  'é',
  '😀',
  '.',
  '\\n',
  '\\d',
  '\\W',
  '[ab]',
  '[^a\\n]',
  '^',
  '\\b',
  '1',
]

test('it finds what the linear engine does', () => {
  const own = ['\\B', '[[:upper:]]', '\\A', '\\z', '(?i)', '(?m)', '(?s:.)', '\\Qa+\\E']
  compareWith(sources([...common, ...own], ['(?:', '(?<=', '(?<!']), (source) => {
    const linear = RE2JS.compile(source, RE2JS.LOOKBEHINDS)
    return (text) => linear.test(text)
  })
})

test('it finds what the engine of JavaScript does, also with look-around', () => {
  compareWith(sources([...common, '$'], ['(', '(?:', '(?=', '(?!', '(?<=', '(?<!']), (source) => {
    const native = new RegExp(source.replaceAll('$', '(?=\\n?$)'), 'uy')
    // Start by start: V8 alone also tries the middle of a surrogate pair.
    return (text) => {
      const starts = Array.from(text.matchAll(/(?:)/gu), ({ index }) => index)
      return starts.some((at) => {
        native.lastIndex = at
        return native.test(text)
      })
    }
  })
})

test('a text is found by its literal pattern in both engines', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (text) => {
      for (const look of ['', '(?=)']) {
        const compiled = compilePattern(`^${literalPattern(text)}${look}$`)
        assert.ok(typeof compiled === 'function' && compiled(text, fresh()))
      }
    }),
  )
})
