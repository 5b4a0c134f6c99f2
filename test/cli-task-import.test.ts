/**
 * `task create --file`: lines become tasks, bad lines are named, order and numbers are kept.
 */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { linesOf } from '../src/cli/io.ts'
import { createFromFile, opOfLine } from '../src/cli/verbs/task-import.ts'
import { systemClock } from '../src/core/clock.ts'
import { fault } from '../src/core/faults.ts'
import type { Admin } from '../src/server/admin/verbs.ts'
import type { RawOp } from '../src/task-operations/task-actions.ts'
import { callback_process } from './support/cli-process.ts'
import { rowsOf, run, tempFolder } from './support/cli-run.ts'
import { pick } from './support/pick.ts'

const folder = tempFolder()
after(() => folder.remove())

// biome-ignore format: a table
const rows: [line: string, ref_text: string | undefined, data_text: string][] = [
  ['{"data":{"a":1}}',                  undefined, '{"a":1}'],
  ['{"ref":"r","data":{"a":1.10}}',     '"r"',     '{"a":1.10}'],
  ['{"ref":7.0,"data":{}}',             '7.0',     '{}'],
  ['{"ref":7,"data":[]}',               '7',       '{}'],
  ['{"ref":null,"data":{}}',            undefined, '{}'],
  ['{"a":12345678901234567890}',        undefined, '{"a":12345678901234567890}'],
  ['{"ref":"r","amount":1}',            undefined, '{"ref":"r","amount":1}'],
  ['{}',                                undefined, '{}'],
  ['{"data":{"data":{"x":1}}}',         undefined, '{"data":{"x":1}}'],
]
for (const [line, ref_text, data_text] of rows) {
  test(`a line ${line}`, () => {
    const op = opOfLine(line, '1') as RawOp
    assert.deepEqual([op.type, op.ref_text, op.data_text], ['create', ref_text, data_text])
  })
}

// biome-ignore format: a table
const bad_rows: [line: string, says: RegExp][] = [
  ['{"a":',                       /not JSON/],
  ['[1]',                         /not a JSON object/],
  ['7',                           /not a JSON object/],
  ['{"data":7}',                  /data is not a JSON object/],
  ['{"data":[1]}',                /data is not a JSON object/],
  ['{"data":{},"conv_id":1}',     /beside data and ref there is "conv_id"/],
  ['{"ref":{},"data":{}}',        /ref is no string/],
]
for (const [line, says] of bad_rows) {
  test(`a bad line ${line}`, () => assert.match(String(opOfLine(line, '1')), says))
}

// biome-ignore format: a table
const streams: [chunks: (string | number[])[], lines: string[]][] = [
  [['a\nb\n'],              ['1:a', '2:b']],
  [['a\nb'],                ['1:a', '2:b']],
  [['a', 'b\n', '\nc'],     ['1:ab', '2:', '3:c']],
  [['\ufeffa\r\nb'],        ['1:a\r', '2:b']],
  [['0123456789', '01\nx'], ['1!longer than 8 bytes', '2:x']],
  [[[0xff, 0x0a, 0x61]],    ['1!not UTF-8 text', '2:a']],
  [[[0xc3], [0xa9]],        ['1:é']],
  [[],                      []],
]
for (const [chunks, expected] of streams) {
  test(`lines of ${JSON.stringify(chunks)}`, async () => {
    const found: string[] = []
    for await (const line of linesOf(bytesOf(chunks), 8)) {
      found.push(`${line.number}${'text' in line ? `:${line.text}` : `!${line.mistake}`}`)
    }
    assert.deepEqual(found, expected)
  })
}

async function* bytesOf(chunks: (string | number[])[]): AsyncGenerator<Uint8Array> {
  for (const chunk of chunks) yield Buffer.from(chunk as string)
}

test('a file of good and bad lines', async () => {
  const db = join(folder.path, 'a.lmdb')
  const definition = JSON.stringify(callback_process)
  assert.equal((await run(['process', 'import', '-', '--db', db], { stdin: definition })).exit, 0)
  const lines = [
    '{"ref":"a","data":{"n":1.10}}',
    '',
    '{"ref":"a","data":{"n":2}}',
    'no json',
    '{"plain":12345678901234567890}',
  ]
  const file = join(folder.path, 'tasks.ndjson')
  writeFileSync(file, lines.join('\n'))
  const people = await run(['task', 'create', '1234', '--file', file, '--db', db])
  assert.equal(people.exit, 1)
  assert.match(people.out, /^created 2, refused 2\n$/)
  assert.match(people.err, /line 3: not_unical_ref/)
  assert.match(people.err, /line 4: .*not JSON/)
  assert.match(people.err, /4 lines, \d+ a second/)

  const program = await run(['task', 'create', '1234', '--file', file, '--db', db, '--json'])
  assert.equal(program.exit, 1)
  assert.equal(program.err, '')
  const answers = rowsOf(program.out).map(({ line, proc }) => [line, proc])
  const expected = [
    [1, 'ok'],
    [3, 'not_unical_ref'],
    [4, 'error'],
    [5, 'ok'],
  ]
  assert.deepEqual(answers, expected)

  const { out } = await run(['task', 'list', '1234', '--db', db, '--json', '--limit', '0'])
  assert.ok(out.includes('"n":1.10') && out.includes('12345678901234567890'), out)
  const missing = await run(['task', 'create', '1234', '--file', '/no/such', '--db', db])
  assert.equal(missing.exit, 2)
})

const nowhere = { write: (_text: string, done: () => void) => done() }

test('a few batches are sent at once, in order, and no further lines are read', async () => {
  let under_way = 0
  let most = 0
  let read = 0
  let answered = 0
  let ahead_most = 0
  async function* stdin(): AsyncGenerator<Uint8Array> {
    for (; read < 5000; read++) {
      ahead_most = Math.max(ahead_most, read - answered)
      yield Buffer.from(`{"n":${read}}\n`)
    }
  }
  const seen: string[] = []
  const admin = adminOf(async (ops) => {
    most = Math.max(most, ++under_way)
    for (const { data_text } of ops) seen.push(data_text)
    await new Promise((resolve) => setImmediate(resolve))
    under_way--
    answered += ops.length
    return ops.map(() => ({ ref: null, obj: 'task', proc: 'ok' }) as const)
  })
  let out = ''
  const io = {
    ...ioOf(stdin()),
    stdout: {
      write(text: string, done: () => void) {
        out += text
        done()
      },
    },
  }
  const exit = await createFromFile(admin, io, { conv_id: '1', file: '-', json: true })
  assert.equal(exit, 0)
  assert.ok(most >= 2 && most <= 4, `${most} under way`)
  assert.ok(ahead_most <= 3000, `${ahead_most} lines ahead of the answers`)
  assert.deepEqual(
    seen,
    Array.from({ length: 5000 }, (_, n) => `{"n":${n}}`),
  )
  assert.deepEqual(
    pick(rowsOf(out), 'line'),
    Array.from({ length: 5000 }, (_, n) => n + 1),
  )
})

test('overloaded is retried; another fault stops and names the last answered line', async () => {
  let calls = 0
  const admin = adminOf(async (ops) => {
    calls++
    if (calls === 1) throw fault('overloaded')
    if (calls === 4) throw fault('store_failed')
    return ops.map(() => ({ ref: null, obj: 'task', proc: 'ok' }) as const)
  })
  const lines = Buffer.from('{"n":1}\n'.repeat(1700))
  const created = createFromFile(admin, ioOf([lines]), { conv_id: '1', file: '-', json: false })
  await assert.rejects(created, (error: Error & { code?: string }) => {
    assert.equal(error.code, 'store_failed')
    assert.match(error.message, /lines up to \d+ are answered/)
    return true
  })
})

function adminOf(apply: (ops: readonly RawOp[]) => Promise<unknown>): Admin {
  return {
    call: async (verb, args) =>
      (verb === 'about'
        ? { path: 'x', ops_max: 1000 }
        : await apply((args as { ops: RawOp[] }).ops)) as never,
    close: async () => {},
  }
}

function ioOf(chunks: AsyncIterable<Uint8Array> | Uint8Array[]) {
  async function* stdin(): AsyncGenerator<Uint8Array> {
    yield* chunks
  }
  return {
    stdin: stdin(),
    stdout: nowhere,
    stderr: nowhere,
    lines: () => assert.fail('only a server has a log'),
    clock: systemClock,
    pid: 1,
    program: 'conveyor',
    command: [],
    node: process.version,
    isAlive: () => false,
    sleep_ms: async () => {},
    onStop: () => () => {},
    kill() {},
  }
}
