/**
 * The page of what of the public service runs here: each logic kind, member, comparison, type,
 * function, field, template, library and path of the source has one row, and no row names what the
 * source does not have.
 */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { opFaults } from '../src/core/faults.ts'
import type { JsonObject } from '../src/core/model.ts'
import { functionTable } from '../src/process/functions/table.ts'
import { rootNames } from '../src/process/logic.ts'
import { apiCode } from '../src/process/logics/api-code.ts'
import { codeLibraries } from '../src/process/logics/code-libraries.ts'
import { comparisonTable } from '../src/process/logics/comparisons.ts'
import { handler_types, logicTable } from '../src/process/logics/table.ts'
import { compileTemplate } from '../src/process/templates/template.ts'
import { typeTable } from '../src/process/values.ts'
import { routeUnder } from '../src/server/http/path.ts'
import { notes } from './support/logic-context.ts'
import { top } from './support/package-folder.ts'

interface Row {
  readonly part: string
  readonly names: readonly string[]
  readonly here: string
  readonly note: string
}

const page = readFileSync(join(top, 'src/process/public-service.md'), 'utf8')
const rows = page
  .slice(page.indexOf('<!-- table'))
  .split('\n')
  .filter((line) => line.startsWith('|'))
  .slice(2)
  .map((line): Row => {
    const [part = '', names = '', here = '', note = ''] = line
      .slice(1, -1)
      .split('|')
      .map((cell) => cell.trim())
    return {
      part,
      names: [...names.matchAll(/`([^`]+)`/g)].map(([, name]) => name ?? ''),
      here,
      note,
    }
  })

const named = (part: string): string[] =>
  rows.filter((row) => row.part === part).flatMap(({ names }) => names)

test('each row says whether it runs, and those that do not just as there say why', () => {
  assert.ok(rows.length > 40)
  for (const { part, names, here, note } of rows) {
    assert.ok(['runs', 'differs', 'not here'].includes(here), `${part}: ${here}`)
    if (here !== 'runs') assert.notEqual(note, '', `${part} ${names}`)
  }
})

/** [part, the names that the source has] */
const parts: readonly (readonly [string, readonly string[]])[] = [
  ['logic', [...logicTable.map(({ type }) => type), ...handler_types]],
  ['comparison', [...new Set(comparisonTable.map(({ fun }) => fun))]],
  ['type', Object.keys(typeTable)],
  ['function', functionTable.map(({ name }) => name)],
  ['field of `root`', rootNames],
  ['library', Object.values(codeLibraries).flatMap(({ names }) => names)],
  ['kind of process', ['process', 'state']],
  ['semaphor', ['time', 'count']],
  ['op', ['create', 'delete', 'get', 'modify', 'show']],
  ['fault of an op', Object.keys(opFaults)],
  ...logicTable.map(({ type, compile }) => [`of \`${type}\``, membersOf(compile)] as const),
]
for (const [part, wanted] of parts) {
  test(`${part}: a row for each name of the source, and for no other`, () => {
    assert.deepEqual(named(part).toSorted(), wanted.toSorted())
  })
}

/** The members that compiling a logic reads; those of members are not among them. */
function membersOf(compile: (typeof logicTable)[number]['compile']): string[] {
  const read = new Set<string>()
  const givens: JsonObject[] = [
    {},
    { customize_response: true },
    { format: 'raw' },
    { res_data: {} },
    { param: 'a', fun: 'eq', const: '1', cast: 'string' },
  ]
  for (const given of givens) {
    const get = (raw: JsonObject, name: string | symbol) => {
      read.add(String(name))
      return raw[String(name)]
    }
    compile(new Proxy(given, { get }), notes())
  }
  // Decides whether there is a kind at all.
  if (compile === apiCode.compile) read.add('lang')
  return [...read]
}

test('each template is one', () => {
  for (const text of named('template')) {
    const report = notes()
    const { constant } = compileTemplate(text, report, 'x')
    assert.deepEqual([constant, report.mistakes, report.warnings], [undefined, [], []], text)
  }
})

test('each request is routed, and each kind of request has a row', () => {
  const route = routeUnder('')
  const segments: Readonly<Record<string, string>> = {
    user: '1',
    time: '1700000000',
    id: '5',
    token: 'a'.repeat(64),
  }
  const kinds = named('request').map((path) => {
    const url = path.replace(/\{(\w+)\}/g, (_all, name) => segments[name] ?? 'a'.repeat(40))
    return route(url)?.kind
  })
  const source = readFileSync(join(top, 'src/server/http/path.ts'), 'utf8')
  const wanted = [...source.matchAll(/readonly kind: '(?!malformed)(\w+)'/g)].map(
    ([, kind]) => kind,
  )
  assert.ok(wanted.length >= 5)
  assert.deepEqual([...new Set(kinds)].toSorted(), wanted.toSorted())
})

test('a tag occurs in the source or in a vector, one that is not here in none', () => {
  const texts = ['src', 'test/vectors'].flatMap((folder) =>
    readdirSync(join(top, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.(ts|json)$/.test(name))
      .map((name) => readFileSync(join(top, folder, name), 'utf8')),
  )
  const all = texts.join()
  for (const { part, names, here } of rows.filter((row) => row.part === 'tag')) {
    for (const name of names) {
      assert.equal(new RegExp(`\\b${name}\\b`).test(all), here !== 'not here', `${part} ${name}`)
    }
  }
})
