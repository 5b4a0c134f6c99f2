/**
 * The functions of templates: the examples of every row of the table, and what functions refuse.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { stringifyJson } from '../src/codec/json.ts'
import { utc, zoneOf } from '../src/process/functions/calendar.ts'
import { functionTable } from '../src/process/functions/table.ts'
import { expansionOf } from '../src/process/templates/parser.ts'
import { compileTemplate } from '../src/process/templates/template.ts'
import { contextOf, expanded, mistakeOf, notes } from './support/logic-context.ts'

for (const row of functionTable) {
  for (const { text, data = {}, gives } of row.examples) {
    test(`${row.name}: ${text}`, () => {
      assert.equal(expanded(text, data), stringifyJson(gives))
      assert.equal(Array.isArray(gives) ? 'array' : typeof gives, row.result)
    })
  }
  test(`${row.name} has an example for each of its syntaxes`, () => {
    assert.ok(row.examples.length >= row.syntax.length)
  })
}

const values: [text: string, data: string, gives: string][] = [
  ['$.math( 1 + 2 * 3 )', '{}', '7'],
  ['$.math((1+2)*3)', '{}', '9'],
  ['$.math(--1 - -1)', '{}', '2'],
  ['$.math(-0)', '{}', '0'],
  ['$.math(1e2+.5)', '{}', '100.5'],
  ['$.math({{a.b[1]}}/4)', '{"a":{"b":[1,"10"]}}', '2.5'],
  ['$.math({{a}}+1)', '{"a":1.10}', '2.1'],
  ['$.math({{a}}*{{a}})', '{"a":12345678901234567890}', '1.5241578753238834e+38'],
  ['$.math({{a}}+1)', '{}', 'fails: $.math: {{a}} is missing'],
  ['$.math({{a}}+1)', '{"a":"1+2"}', 'fails: $.math: {{a}} is no number'],
  ['$.math({{a}}+1)', '{"a":1e400}', 'fails: $.math: {{a}} is no number'],
  ['$.math({{a}}+1)', '{"a":null}', 'fails: $.math: {{a}} is no number'],
  ['$.math(1/{{a}})', '{"a":0}', 'fails: $.math: division by zero'],
  ['$.math(1e308*10)', '{}', 'fails: the result is no finite number'],
  ['sum $.math(1+1)!', '{}', '"sum 2!"'],
  ['$.random({{n}})', '{"n":"4"}', '2'],
  ['$.random(-1)', '{}', '-1'],
  ['$.random({{n}})', '{"n":-2}', '-1'],
  ['$.random({{n}})', '{"n":1.5}', 'fails: {{n}} is no whole number'],
  ['$.random({{n}})', '{}', 'fails: {{n}} is no whole number'],
  ['$.random(5,{{n}})', '{"n":4}', 'fails: $.random: from 5 to 4 is no range'],
  ['$.random($.math(2*3))', '{}', '3'],
  ['$.random(99999999999999999999)', '{}', '4503599627370496'],
  ['$.random({{n}})', '{"n":-1e300}', '-4503599627370496'],
  ['$.random({{n}})', '{"n":1e400}', 'fails: {{n}} is no whole number'],
  ['$.date(%y+{{n}})', '{"n":1e300}', 'fails: %y+{{n}} goes beyond the calendar'],
  ['$.date(%y-%m-%d+1-%h:%i:%s)', '{}', '"2024-03-01-12:30:15"'],
  ['$.date(%y-%m+12-%d)', '{}', '"2025-02-28"'],
  ['$.date(%y-01-01)', '{}', '"2024-01-01"'],
  ['$.date(%y%m%d%h%i%s)', '{}', '"20240229123015"'],
  ['$.date(%d-1.%m)', '{}', '"28.02"'],
  ['$.date(%y-%m-%d-{{d}})', '{"d":"1"}', '"2024-02-28"'],
  ['$.date(%h:%i-{{d}})', '{"d":31}', '"11:59"'],
  ['$.date(%d-$.math({{d}}*2)-%m)', '{"d":1}', '"27-02"'],
  ['$.date(%d-{{d}})', '{"d":-1}', '"01"'],
  ['$.date(%d-{{d}})', '{"d":0}', '"29"'],
  ['$.date(%d-{{d}})', '{}', 'fails: {{d}} is no whole number'],
  ['$.unixtime(%y-%m-%d-{{d}} %h:%i:%s)', '{"d":1}', '1709123415'],
  // A minus right after a part shifts it; after a shift, or after another text, it is text.
  ['$.date(%y-{{m}})', '{"m":"5"}', '"2019"'],
  ['$.date(%m-{{d}})', '{"d":"1"}', '"01"'],
  ['$.date(%d-{{d}}.%m.%y)', '{"d":"1"}', '"28.02.2024"'],
  ['$.date(%y-{{y}}-%m-%d)', '{"y":1}', '"2023-02-28"'],
  // It is text too where only so a whole date is made.
  ['$.date(%y-{{m}}-{{d}})', '{"m":"05","d":"07"}', '"2024-05-07"'],
  ['$.unixtime(%y-{{m}}-01 00:00:00)', '{"m":"01"}', '1704067200'],
  ['$.unixtime(%y-%m-{{d}} 00:00)', '{"d":"01"}', '1706745600'],
  ['$.date(%d-1-{{d}})', '{"d":1}', '"28-1"'],
  ['$.date(%y -{{d}})', '{"d":1}', '"2024 -1"'],
  ['$.date(%y)-{{m}}', '{"m":"05"}', '"2024-05"'],
  ['$.date(%d-$.random(0))', '{}', '"29-0"'],
  ['$.date(%h-13 %d)', '{}', '"23 28"'],
  ['$.date({{text}} %y)', '{"text":"%y $.math(1+1) {{n}}"}', '"%y $.math(1+1) {{n}} 2024"'],
  ['$.date(%d+{{n}})', '{"n":"x"}', 'fails: {{n}} is no whole number'],
  ['$.date(%y+{{n}})', '{"n":9000}', 'fails: %y+{{n}} goes beyond the calendar'],
  ['$.date(%d+{{n}})', '{"n":9007199254740991}', 'fails: %d+{{n}} goes beyond the calendar'],
  [
    "$.date(%d+{{n}}).tz('Asia/Tokyo')",
    '{"n":-9007199254740991}',
    'fails: %d+{{n}} goes beyond the calendar',
  ],
  ["$.date(%h:%i).tz('Asia/Kolkata')", '{}', '"18:00"'],
  ['$.date(%h:%i).tz("America/New_York")', '{}', '"07:30"'],
  ["$.unixtime().tz('Europe/Kiev')", '{}', '1709209815'],
  ['$.unixtime( )', '{}', '1709209815'],
  ['$.unixtime(%y-%m-%d)', '{}', '1709164800'],
  ['$.unixtime($.date(%y-%m-%d 00:00:00))', '{}', '1709164800'],
  ['$.unixtime({{t}})', '{"t":"2024-02-30"}', 'fails: $.unixtime: 2024-02-30 is no date'],
  ['$.unixtime({{t}})', '{"t":"31.02.2024"}', 'fails: $.unixtime: 31.02.2024 is no date'],
  ['$.unixtime({{t}})', '{"t":"01.02.24 10:00"}', 'fails: $.unixtime: 01.02.24 10:00 is no date'],
  ['$.unixtime({{t}})', '{"t":" 1.3.2024 "}', '1709251200'],
  ["$.unixtime(01.03.2024 10:00:00).tz('Europe/Kyiv')", '{}', '1709280000'],
  ['$.unixtime({{t}})', '{"t":"soon"}', 'fails: $.unixtime: soon is no date'],
  ['$.unixtime({{t}})', '{}', 'fails: $.unixtime:  is no date'],
  ['$.unixtime({{t}})', '{"t":"25:00"}', 'fails: $.unixtime: 25:00 is no date'],
  ["$.date().tz('Europe/Kiev')", '{}', '"2024-02-29 14:30:15"'],
  ['$.date( )', '{}', '"2024-02-29 12:30:15"'],
  ['$.date(%q 100% %y)', '{}', '"%q 100% 2024"'],
  ['$.date(%13:%i)', '{}', '"13:30"'],
  ['$.unixtime(%y-%m-%d %02:%00:%00)', '{}', '1709172000'],
  ['$.unixtime(%y-%m-%d+1 02:00:00)', '{}', '1709258400'],
  ['$.unixtime(%m-%d+1 02:00:00)', '{}', '1709258400'],
  ['$.unixtime(%2024-%03-%01)', '{}', '1709251200'],
  ['$.unixtime(%y-%m+{{n}}-01 {{h}}:00:00)', '{"n":1,"h":"02"}', '1709258400'],
  ['$.unixtime(%h+13:%00)', '{}', '1709254800'],
  ['$.unixtime(%13:%00:%00)', '{}', '1709211600'],
  ["$.unixtime(13:00:00).tz('Europe/Kiev')", '{}', '1709204400'],
  ["$.unixtime(00:30).tz('Asia/Tokyo')", '{}', '1709134200'],
  ["$.unixtime(%y-%m-%d 02:00:00).tz('Europe/Kiev')", '{}', '1709164800'],
  ["$.date(%h).tz('{{zone}}')", '{"zone":"Asia/Tokyo"}', '"21"'],
  ['$.date(%h).tz({{zone}})', '{"zone":"Europe/Kiev"}', '"14"'],
  ['$.date(%h).tz(Europe/Kiev)', '{}', '"14"'],
  ['$.date(%h).tz({{zone}})', '{}', 'fails: "" is no time zone'],
  ["$.date(%h).tz('{{zone}}')", '{"zone":"Mars/Base"}', 'fails: "Mars/Base" is no time zone'],
  ["$.math($.unixtime(%y-%m-%d).tz('UTC')+{{n}})", '{"n":60}', '1709164860'],
  ['$.to_string({{a}})', '{"a":1.10}', '"1.10"'],
  ['$.to_string({{a}})', '{}', '""'],
  ['$.to_string(x {{a}})', '{"a":true}', '"x true"'],
  ['$.to_number(1.10)', '{}', '1.10'],
  ['$.to_number({{a}})', '{"a":" 7 "}', '7'],
  ['$.to_number({{a}}{{b}})', '{"a":1,"b":2}', '12'],
  ['$.to_number({{a}})', '{"a":"x"}', 'fails: $.to_number: x is no number'],
  ['$.to_number({{a}})', '{}', 'fails: $.to_number: nothing is no number'],
  ['$.to_array({{a}})', '{"a":[1.0]}', '[1.0]'],
  ['$.to_array({{a}})', '{"a":{}}', 'fails: $.to_array: {} is no array'],
  ['$.to_object({{str}})', '{"str":"{\\"obj\\":{\\"key\\":1.10}}"}', '{"obj":{"key":1.10}}'],
  ['$.to_object({"a":"{{b}}"})', '{"b":"\\",\\"c\\":\\""}', '{"a":"\\",\\"c\\":\\""}'],
  ['$.to_object({"a":{{b}}})', '{"b":"x"}', 'fails: $.to_object: {"a":x} is no object'],
  ['$.to_object($.to_string({{a}}))', '{"a":{"b":1.0}}', '{"b":1.0}'],
  ['<$.to_object({{a}})>', '{"a":"{\\"b\\":1}"}', '"<{\\"b\\":1}>"'],
  ['$.md5_hex($.to_string({{a}}))', '{"a":"hello"}', '"5d41402abc4b2a76b9719d911017c592"'],
  ['$.md5_hex()', '{}', '"d41d8cd98f00b204e9800998ecf8427e"'],
  ['$.md5_hex({{a}})', '{}', '"d41d8cd98f00b204e9800998ecf8427e"'],
  ['$.sha1_hex(100)', '{}', '"310b86e0b62b828562fc91c7be5380a992b2786a"'],
  ['$.sha1_hex({{n}})', '{"n":100}', '"310b86e0b62b828562fc91c7be5380a992b2786a"'],
  ['$.base64_encode({{a}})', '{"a":{"b":1.10}}', '"eyJiIjoxLjEwfQ=="'],
  ['$.base64_encode(x $.md5(ab))', '{}', '"eCAYfsO0Q2Eiw5HDjC9Aw5wrwpLDsMOrwqA="'],
  ['$.md5_hex($.base64_encode({{a}}))', '{"a":"hello"}', '"0733351879b2fa9bd05c7ca3061529c0"'],
]

for (const [text, data, gives] of values) {
  test(`${text} over ${data}`, () => assert.equal(expanded(text, data), gives))
}

// A malformed argument is warned of, and fails the expansion.
const malformed: [text: string, why: string][] = [
  ['$.unixtime(%q)', '%q does not show a date at character 12'],
  ['$.unixtime(%y-%25-%d)', '%y-%25-%d does not show a date at character 12'],
  ['$.unixtime(%y)', '%y does not show a date at character 12'],
  ['$.unixtime(abc)', 'abc does not show a date at character 12'],
  ["$.date(%y).tz('Europe/Nowhere')", '"Europe/Nowhere" is no time zone at character 11'],
  ["$.date(%y).tz('UTC' x)", '")" was expected at character 20'],
  ['$.math()', 'a number or a template was expected at character 8'],
  ['$.math(1+)', 'a number or a template was expected at character 10'],
  ['$.math(1 2)', '")" was expected at character 10'],
  ['$.math({{a}}{{b}})', '")" was expected at character 13'],
  ['$.math(1e999)', '1e999 is too large at character 8'],
  ['$.math((1+) * {{a}})', 'a number or a template was expected at character 11'],
  ['$.random(abc)', 'abc is no whole number at character 10'],
  ['$.random(a,b)', 'a is no whole number at character 10'],
  ['$.random(1,)', 'nothing is no whole number at character 12'],
]

for (const [text, why] of malformed) {
  test(`${text} fails when it runs`, () => {
    const name = /^\$\.\w+/.exec(text)?.[0]
    assert.equal(expanded(text), `fails: ${name}: ${why}`)
    const report = notes()
    compileTemplate(text, report, 'here')
    const warned = report.warnings.at(-1)
    assert.equal(warned, `here: ${JSON.stringify(text)} fails when it runs: ${why}`)
  })
}

test('a malformed argument fails the function around it, and one warning is enough', () => {
  const text = '$.math(1+$.random(a)) $.math(x) $.md5_hex($.math(y))'
  const report = notes()
  const run = expansionOf(contextOf('{}'))
  assert.equal(compileTemplate(text, report, 'here').value(run), undefined)
  assert.equal(run.failure?.description, '$.random: a is no whole number at character 19')
  assert.deepEqual([report.mistakes.length, report.warnings.length], [0, 1])
})

const mistakes: [text: string, mistake: string][] = [
  [`$.math(${'('.repeat(40)}1${')'.repeat(40)})`, 'nested deeper than 32 at character 40'],
  ['$.map({{a}})', '"fun" was expected at character 7'],
  ['$.math(1+$.map({{a}}))', '"fun" was expected at character 16'],
  ["$.date(%y $.filter(x)).tz('UTC')", '"fun" was expected at character 20'],
]

for (const [text, mistake] of mistakes) {
  test(`refuses ${text.slice(0, 40)}`, () =>
    assert.ok(mistakeOf(text).endsWith(`: ${mistake}`), mistakeOf(text)))
}

test('a long expression does not nest', () => {
  assert.equal(expanded(`$.math(1${'+1'.repeat(50_000)})`), '50001')
  assert.equal(expanded(`$.math(${'-'.repeat(50_000)}1)`), '1')
})

test('zones convert to wall-clock time and back, at the hour shown twice and the hour skipped', () => {
  const kyiv = zoneOf('Europe/Kyiv') ?? utc
  for (const [instant, shown] of [
    ['2024-03-31T00:59:00Z', '2024-03-31T02:59:00Z'],
    ['2024-03-31T01:00:00Z', '2024-03-31T04:00:00Z'],
    ['2024-10-27T00:30:00Z', '2024-10-27T03:30:00Z'],
    ['2024-10-27T02:00:00Z', '2024-10-27T04:00:00Z'],
  ] as const) {
    assert.equal(kyiv.wallOf(Date.parse(instant)), Date.parse(shown))
    assert.equal(kyiv.instantOf(Date.parse(shown)), Date.parse(instant))
  }
  assert.equal(kyiv.wallOf(Date.parse('2024-10-27T01:30:00Z')), Date.parse('2024-10-27T03:30:00Z'))
  assert.equal(
    kyiv.instantOf(Date.parse('2024-03-31T03:30:00Z')),
    Date.parse('2024-03-31T01:30:00Z'),
  )
  assert.equal(zoneOf('__proto__'), undefined)
})
