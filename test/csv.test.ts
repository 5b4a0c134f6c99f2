/**
 * Tasks from and to CSV: how rows are read and written, what becomes of their cells, and a file
 * that goes in by `task import` and comes out by `task export` as it was.
 */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { csvLine, csvRows, type Divider, plainCell, textCell } from '../src/task-operations/csv.ts'
import {
  type ColumnType,
  cellsOf,
  columnsMistake,
  opOfRow,
} from '../src/task-operations/csv-tasks.ts'
import type { TaskView } from '../src/task-operations/task-view.ts'
import { callback_process } from './support/cli-process.ts'
import { rowsOf, run, tempFolder } from './support/cli-run.ts'

const folder = tempFolder()
after(() => folder.remove())

async function* streamOf(chunks: readonly string[]): AsyncGenerator<string> {
  yield* chunks
}

const row_chars_max = 20

// biome-ignore format: a table
const read_rows: readonly (readonly [given: string, found: readonly (readonly string[] | string)[], divider?: Divider])[] = [
  ['',                         []],
  ['\ufeff',                   []],
  ['a,b',                      [['a', 'b']]],
  ['\ufeffa,b\n',              [['a', 'b']]],
  ['a,b\r\nc,d\r\n',           [['a', 'b'], ['c', 'd']]],
  ['a,b\rc,d\r',               [['a', 'b'], ['c', 'd']]],
  ['a\n\nb',                   [['a'], [''], ['b']]],
  ['a,\n,b\n,',                [['a', ''], ['', 'b'], ['', '']]],
  ['"a,b","c""d","e\r\nf"',    [['a,b', 'c"d', 'e\r\nf']]],
  ['"",""""',                  [['', '"']]],
  ['a "b" c, d ',              [['a "b" c', ' d ']]],
  ['a;b,c',                    [['a', 'b,c']], ';'],
  ['a|"b|c"',                  [['a', 'b|c']], '|'],
  ['a\tb',                     [['a', 'b']], '\t'],
  ['"\n\n"\n"a\nb',            [['\n\n'], '4: a quote does not close']],
  ['"a"b\nc',                  ['1: text follows a closing quote', ['c']]],
  ['"a" ,b\nc',                ['1: text follows a closing quote', ['c']]],
  ['0123456789,01234567890\nc', ['1: longer than 20 characters', ['c']]],
  ['"',                        ['1: a quote does not close']],
]
for (const [given, found, divider = ','] of read_rows) {
  // In one piece, and by single characters.
  for (const chunks of [[given], [...given]]) {
    test(`rows of ${JSON.stringify(given)} in ${chunks.length} pieces`, async () => {
      const rows: (readonly string[] | string)[] = []
      for await (const row of csvRows(streamOf(chunks), divider, row_chars_max)) {
        rows.push('cells' in row ? row.cells : `${row.number}: ${row.mistake}`)
      }
      assert.deepEqual(rows, found)
    })
  }
}

// biome-ignore format: a table
const written_rows: readonly (readonly [cells: readonly string[], line: string])[] = [
  [['a', ''],        'a,\r\n'],
  [['a,b', 'c"d'],   '"a,b","c""d"\r\n'],
  [['a\nb', ' c'],   '"a\nb"," c"\r\n'],
  [['a;b'],          'a;b\r\n'],
]
for (const [cells, line] of written_rows) {
  test(`a row of ${JSON.stringify(cells)}`, () => assert.equal(csvLine(cells, ','), line))
}

for (const text of ['=1+1', '+1', '-1', '@a', '\ta', "'a", "''=a", 'a', '', '1', ' =1']) {
  test(`the cell of ${JSON.stringify(text)} is no formula, and is that text again`, () => {
    assert.ok(!/^[=+\-@\t\r]/.test(textCell(text)))
    assert.equal(plainCell(textCell(text)), text)
  })
}

// biome-ignore format: a table
const cell_rows: readonly (readonly [type: ColumnType | undefined, cell: string, data: string])[] = [
  [undefined, '1.10',                   '{"a":"1.10"}'],
  [undefined, '',                       '{"a":""}'],
  [undefined, "'=1",                    '{"a":"=1"}'],
  ['number',  '1.10',                   '{"a":1.10}'],
  ['number',  '-12345678901234567890',  '{"a":-12345678901234567890}'],
  ['number',  '1e400',                  '{"a":1e400}'],
  ['number',  '',                       '{}'],
  ['number',  '01',                     'a: "01" is no number'],
  ['number',  '1,5',                    'a: "1,5" is no number'],
  ['number',  'NaN',                    'a: "NaN" is no number'],
  ['boolean', 'true',                   '{"a":true}'],
  ['boolean', 'yes',                    'a: "yes" is no boolean'],
  ['object',  '{"b":1.0}',              '{"a":{"b":1.0}}'],
  ['object',  '[1]',                    'a: "[1]" is no object'],
  ['object',  '{',                      'a: "{" is no object'],
  ['array',   '[1.0]',                  '{"a":[1.0]}'],
]
for (const [type, cell, data] of cell_rows) {
  test(`${type ?? 'text'} ${JSON.stringify(cell)}`, () => {
    const types = new Map(type === undefined ? [] : [['a', type]])
    const op = opOfRow([cell], { names: ['a'], types }, '1')
    assert.equal(typeof op === 'string' ? op : op.data_text, data)
  })
}

const no_types = new Map<string, ColumnType>()

// biome-ignore format: a table
const ref_rows: readonly (readonly [cells: readonly string[], ref_text: string | undefined])[] = [
  [['r', '1'], '"r"'],
  [['', '1'],  undefined],
  [['7', '1'], '"7"'],
]
for (const [cells, ref_text] of ref_rows) {
  test(`the ref of ${cells}`, () => {
    const op = opOfRow(cells, { names: ['id', 'n'], ref: 'id', types: no_types }, '1')
    assert.ok(typeof op !== 'string')
    assert.equal(op.ref_text, ref_text)
  })
}

// biome-ignore format: a table
const column_rows: readonly (readonly [names: readonly string[], ref: string | undefined, mistake: string | undefined])[] = [
  [['a', 'b'], 'b',       undefined],
  [['a', 'a'], undefined, 'two columns are called "a"'],
  [['a', ''],  undefined, 'column 2 has no name'],
  [['a'],      'b',       'there is no column "b"'],
]
for (const [names, ref, mistake] of column_rows) {
  test(`columns ${names}`, () => {
    assert.equal(columnsMistake({ names, ref, types: no_types }), mistake)
  })
}

test('the cells of a task', () => {
  const task = {
    ...{ conv_id: '1', obj_id: '2', status: 'processing', node_id: 'n' },
    data_text: '{"ref":"=1","n":1.10,"neg":-1,"a":{"b":[1.0],"c":null},"t":true}',
  } as unknown as TaskView
  const columns = ['ref', 'data.ref', 'n', 'neg', 'a.b', 'a.c', 't', 'x.y', 'toString', 'status']
  const cells = ['', "'=1", '1.10', '-1', '[1.0]', '', 'true', '', '', 'processing']
  assert.deepEqual(cellsOf(task, columns), cells)
})

test('a file goes in, its bad rows are named, and what comes out is what went in', async () => {
  const db = join(folder.path, 'a.lmdb')
  const on = (...words: string[]) => run([...words, '--db', db])
  const definition = JSON.stringify(callback_process)
  assert.equal((await run(['process', 'import', '-', '--db', db], { stdin: definition })).exit, 0)
  const good = ['id;n;note', 'a;1.10;"x;""y"""', 'b;12345678901234567890;Київ', 'c;;']
  const bad = ['a;1;twice', 'd;x;no number', 'e;1', '"f']
  const file = join(folder.path, 'tasks.csv')
  writeFileSync(file, `\ufeff${[...good, ...bad].join('\r\n')}`)
  const flags = ['--divider', ';', '--ref-column', 'id', '--convert', 'n:number']
  const made = await on('task', 'import', '1234', file, ...flags)
  assert.deepEqual([made.exit, made.out], [1, 'created 3, refused 4\n'])
  for (const says of [
    /line 5: not_unical_ref/,
    /line 6: .*n: "x" is no number/,
    /line 7: .*2 cells where there are 3 columns/,
    /line 8: .*a quote does not close/,
  ]) {
    assert.match(made.err, says)
  }
  const again = await on('task', 'import', '1234', file, ...flags, '--json')
  // The same create is answered as the first was, so an import may be repeated.
  assert.deepEqual(
    rowsOf(again.out).map(({ line, proc }) => `${line} ${proc}`),
    ['2 ok', '3 ok', '4 ok', '5 not_unical_ref', '6 error', '7 error', '8 error'],
  )
  const columns = ['--columns', 'id,n,note', '--divider', ';']
  const { out } = await on('task', 'export', '1234', ...columns)
  assert.equal(out, `${good.join('\r\n')}\r\n`)
  const whole = await on('task', 'export', '--ref-prefix', 'b')
  assert.match(whole.out, /^conv_id,obj_id,ref,.*\r\n1234,[0-9a-f]+,b,delayed,/)
})

// biome-ignore format: a table
const usage_rows: readonly (readonly [words: readonly string[], says: RegExp])[] = [
  [['task', 'import', '1234', '-', '--divider', 'x'],           /--divider is one of/],
  [['task', 'import', '1234', '-', '--convert', 'a'],           /--convert is NAME:TYPE/],
  [['task', 'import', '1234', '-', '--convert', 'a:date'],      /type of --convert is one of/],
  [['task', 'import', '1234', '-', '--encoding', 'x'],          /no encoding that is known/],
  [['task', 'import', '1234', '-', '--ref-column', 'x'],        /there is no column "x"/],
  [['task', 'import', '1234', '/no/such.csv'],                  /no\/such\.csv/],
  [['task', 'export', '1234', '--columns', 'a,,b'],             /--columns is a list/],
]
for (const [words, says] of usage_rows) {
  test(words.join(' '), async () => {
    const db = join(folder.path, 'a.lmdb')
    const { exit, err } = await run([...words, '--db', db], { stdin: 'a,b\n1,2\n' })
    assert.equal(exit, 2)
    assert.match(err, says)
  })
}

test('bytes of another encoding', async () => {
  const db = join(folder.path, 'a.lmdb')
  const file = join(folder.path, 'old.csv')
  writeFileSync(file, Buffer.from([...Buffer.from('id,t\nw,'), 0xca, 0xe8, 0xbf, 0xe2]))
  const words = ['task', 'import', '1234', file, '--ref-column', 'id', '--db', db]
  const refused = await run(words)
  assert.deepEqual([refused.exit, /not text in utf-8/.test(refused.err)], [2, true])
  assert.equal((await run([...words, '--encoding', 'windows-1251'])).exit, 0)
  const { out } = await run(['task', 'export', '--ref-prefix', 'w', '--columns', 't', '--db', db])
  assert.equal(out, 't\r\nКиїв\r\n')
})
