/**
 * The lines of the log: which event and code each failure leaves, exactly once; how many lines a
 * flood leaves; and that no value forges a line or is quoted by the line of a bug.
 */
import assert from 'node:assert/strict'
import { Console } from 'node:console'
import { readFileSync } from 'node:fs'
import { PassThrough } from 'node:stream'
import { test } from 'node:test'
import pino from 'pino'
import { signatureOf } from '../src/codec/signature.ts'
import { type EventFields, eventTable } from '../src/core/event-table.ts'
import { bugFields, newEvents } from '../src/core/events.ts'
import { type Logger, lines_max, newLog, window_ms } from '../src/core/log.ts'
import type { Engine, EngineOptions } from '../src/engine/api/engine-api.ts'
import { fakeClock } from './support/fake-clock.ts'
import { go, linesLogger, opened, processWith } from './support/handler-harness.ts'
import { documentedFields, planted, wrongIn } from './support/kept-lines.ts'

test('of one event and code twenty lines are written in ten seconds, then how many were not', () => {
  const logger = linesLogger()
  const clock = fakeClock()
  const { emit, close } = newEvents(logger, clock)
  const emitMany = (count: number, fields: EventFields): void => {
    for (let n = 0; n < count; n++) emit('request_refused', { ...fields, ms: n })
  }
  const linesOf = (code: string): object[] =>
    logger.lines
      .map(([, fields]) => fields as { code?: string; event: string })
      .filter((fields) => fields.code === code)
  emitMany(lines_max + 30, { code: 'bad_signature' })
  emitMany(2, { code: 'not_found' })
  assert.equal(linesOf('bad_signature').length, lines_max)
  assert.equal(linesOf('not_found').length, 2)
  clock.advance(window_ms - 1)
  assert.equal(logger.lines.length, lines_max + 2)
  clock.advance(1)
  const left_out = { event: 'lines_left_out', of: 'request_refused', code: 'bad_signature' }
  assert.deepEqual(logger.lines.slice(lines_max + 2), [['warn', { ...left_out, count: 30 }]])
  clock.advance(10 * window_ms)
  assert.equal(logger.lines.length, lines_max + 3)
  emitMany(lines_max + 1, { code: 'bad_signature' })
  close()
  assert.deepEqual(logger.lines.at(-1), ['warn', { ...left_out, count: 1 }])
  assert.equal(clock.nextWake_ms(), undefined)
  // A clock that was set back does not silence the log for as long.
  emitMany(lines_max + 1, { code: 'stale_timestamp' })
  clock.set(clock.now_ms() - 3_600_000)
  emitMany(1, { code: 'stale_timestamp' })
  assert.equal(linesOf('stale_timestamp').length, lines_max + 2)
})

test('of what somebody did on the operator’s page no line is left out', () => {
  let lines = 0
  const { emit } = newEvents({ ...linesLogger(), info: () => lines++ }, fakeClock())
  for (let n = 0; n < 10 * lines_max; n++) emit('console_acted', { act: 'cancel', code: 'ok' })
  assert.equal(lines, 10 * lines_max)
})

test('codes without number take a bounded room, and their lines are bounded together', () => {
  const logger = linesLogger()
  const { emit } = newEvents(logger, fakeClock())
  for (let n = 0; n < 10_000; n++) emit('request_refused', { code: `code ${n}` })
  assert.equal(logger.lines.length, 256 + lines_max)
})

test('a value cannot forge a line, move a cursor, or be as long as it likes', () => {
  const forged = `x\n{level: "error"}\r\u001b[2J\u009b2J\u2028\u202e${'y'.repeat(500)}😀`
  const texts: string[] = []
  const stream = new PassThrough()
  stream.on('data', (chunk) => texts.push(String(chunk)))
  const told = (...given: unknown[]): void => void texts.push(`${JSON.stringify(given)}\n`)
  const plain = (fields: object): void =>
    void texts.push(`${Object.values(fields as Record<string, string>).join(' ')}\n`)
  const loggers: readonly Logger[] = [
    pino({ level: 'debug' }, stream),
    new Console(stream) as unknown as Logger,
    { debug: told, info: told, warn: told, error: told },
    { debug: plain, info: plain, warn: plain, error: plain },
  ]
  for (const logger of loggers) {
    texts.length = 0
    newEvents(logger, fakeClock()).emit('request_refused', { code: 'error', user: forged })
    const [line = '', ...more] = texts
      .join('')
      .trimEnd()
      .split(/[\n\r\u2028]/)
    // A console shows an object on several lines of its own.
    if (!(logger instanceof Console)) assert.deepEqual(more, [])
    const shown = [line, ...more].join('\n')
    assert.ok(shown.length < 400, shown)
    assert.doesNotMatch(shown, /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028\u202e]/)
    assert.match(shown, /x·/)
  }
})

test('the line of a bug has where it happened, and nothing that was worked on', () => {
  const marker = 'MARKERofData'
  const thrown = (run: () => unknown): unknown => {
    try {
      return run()
    } catch (error) {
      return error
    }
  }
  const changed = new Error('first')
  changed.message = marker
  /** [what was thrown, the kind told] */
  const rows: readonly (readonly [unknown, string])[] = [
    [thrown(() => JSON.parse(`{"a":${marker}}`)), 'SyntaxError'],
    [thrown(() => (undefined as unknown as Record<string, unknown>)[marker]), 'TypeError'],
    [new Error(`a\n    at ${marker} (file:///x.js:1:1)`), 'Error'],
    [changed, 'Error'],
    [Object.assign(new Error('x'), { name: `${marker} ${marker}`, code: `of ${marker}` }), 'Error'],
    [Object.assign(new Error('x'), { stack: marker }), 'Error'],
    [marker, 'string'],
    [{ marker }, 'object'],
  ]
  for (const [error, kind] of rows) {
    const fields = bugFields(error)
    assert.equal(fields.error, kind)
    assert.ok(!JSON.stringify(fields).includes(marker), JSON.stringify(fields))
  }
  assert.match(String(bugFields(new Error('x')).stack), /^at .*events\.test\.[jt]s:\d+:\d+/)
  assert.equal(bugFields(Object.assign(new Error('x'), { code: 'EIO' })).code, 'EIO')
})

const code = (src: string, more: object = {}) => ({ type: 'api_code', lang: 'js', src, ...more })
const loop = [
  { id: 'start', obj_type: 1, condition: { logics: [go('work')] } },
  { id: 'work', obj_type: 0, condition: { logics: [go('start')] } },
]
const number = { type: 'set_param', extra: { n: '{{a}}' }, extra_type: { n: 'number' } }
const call = (more: object = {}) => ({
  ...{ type: 'api', url: 'http://127.0.0.1:9/secret?q=1', method: 'POST', format: '' },
  ...{ extra: {}, extra_type: {}, extra_headers: {}, rfc_format: true, send_sys: true, version: 2 },
  ...more,
})
const guarded = { err_node_id: 'failed' }

/** [the process, event, code, more of the line, options] */
type FailureRow = readonly [object, string, string, EventFields?, EngineOptions?]

const throwing = { handler: () => Promise.reject(new Error('no bank')), attempts_max: 1 }
const handled: EngineOptions = { handlers: { db_call: throwing } }

const nobody = { driver: 'postgres', host: '127.0.0.1', port: 9, database: 'd', user: 'u' } as const
const query = (more: object = {}) => ({
  ...{ type: 'db_call', instance_id: 'stock', query: 'select {{a}}', ...more },
})
const queried: EngineOptions = { databases: { stock: nobody } }

const failures: Readonly<Record<string, FailureRow>> = {
  'a query': [
    processWith([query(), go('done')]),
    'task_failed',
    'db_call_connection_error',
    { job: 'db', instance: 'stock', error: 'connect ECONNREFUSED 127.0.0.1:9', attempt: 1 },
    queried,
  ],
  'a query, with an error node': [
    processWith([query(guarded), go('done')]),
    'query_failed',
    'db_call_connection_error',
    { job: 'db', instance: 'stock', attempt: 1, attempts_max: 1 },
    queried,
  ],
  'a logic that fails': [
    processWith([number, go('done')]),
    'task_failed',
    'set_param_wrong_convert_param',
  ],
  'a loop': [{ obj_id: 1, scheme: { nodes: loop } }, 'task_failed', 'loop'],
  'code that throws': [
    processWith([code('throw 1'), go('done')]),
    'task_failed',
    'code_executing_error',
    { job: 'code' },
  ],
  'code that throws, with an error node': [
    processWith([code('throw 1', guarded), go('done')]),
    'code_failed',
    'code_executing_error',
    { job: 'code' },
  ],
  'a handler that throws': [
    processWith([{ type: 'db_call' }, go('done')]),
    'task_failed',
    'handler_error',
    { handler: 'db_call', error: 'no bank', attempt: 1, attempts_max: 1 },
    handled,
  ],
  'a handler that throws, with an error node': [
    processWith([{ type: 'db_call', ...guarded }, go('done')]),
    'handler_failed',
    'handler_error',
    { handler: 'db_call', error: 'no bank' },
    handled,
  ],
  'a call': [
    processWith([call(), go('done')]),
    'task_failed',
    'api_bad_answer',
    { job: 'call', host: '127.0.0.1:9' },
  ],
  'a call, with an error node': [
    processWith([call(guarded), go('done')]),
    'call_gave_up',
    'api_bad_answer',
    { job: 'call', host: '127.0.0.1:9', attempt: 1 },
  ],
}

for (const [name, [definition, event, code, more = {}, options = {}]] of Object.entries(failures)) {
  test(`${name} leaves one line: ${event} with ${code}`, async () => {
    const lines: EventFields[] = []
    let emitFirst = (): void => {}
    const first = new Promise<void>((resolve) => {
      emitFirst = resolve
    })
    const keep = (fields: object): void => {
      lines.push(fields as EventFields)
      emitFirst()
    }
    const logger = { debug: keep, info: keep, warn: keep, error: keep }
    const { engine } = await opened({ ...options, logger })
    await engine.processes.put(definition)
    const { obj_id } = await engine.create({ conv_id: 1, data: { a: planted } })
    await first
    await engine.close()
    const [line = {}, ...others] = lines.filter(({ event }) => event !== 'draining')
    assert.deepEqual(others, [])
    const known = { event, code, conv_id: '1', obj_id, ...more }
    assert.deepEqual({ ...line, ...known }, line)
    assert.doesNotMatch(JSON.stringify(line), /PLANTED|secret/)
  })
}

const reenters: { engine?: Engine } = {}

/** What a logger does with each line. */
const loggers: Readonly<Record<string, (fields: object) => unknown>> = {
  throws: () => {
    throw new Error('no disk')
  },
  rejects: () => Promise.reject(new Error('no network')),
  'never ends': () => new Promise(() => {}),
  'changes its fields': (fields) => Object.assign(Object.freeze(fields), { event: 1 }),
  'calls the engine': () => reenters.engine?.create({ conv_id: 2, data: {} }).catch(() => {}),
  'closes the engine': () => reenters.engine?.close(),
}

test('whatever a logger does, a task fails as it would without', async () => {
  for (const [name, write] of Object.entries(loggers)) {
    const logger = { debug: write, info: write, warn: write, error: write }
    const { engine } = await opened({ ...handled, logger })
    reenters.engine = engine
    await engine.processes.put(processWith([number, go('done')]))
    const { obj_id } = await engine.create({ conv_id: 1, data: { a: 'x' } })
    assert.ok(obj_id, name)
    await new Promise((resolve) => setImmediate(resolve))
    await engine.close()
  }
  const log = (): void => {}
  for (const given of [{}, { debug: log, info: log, warn: log }, 7]) {
    const logger = given as unknown as Logger
    await assert.rejects(opened({ logger }), {
      message: /^logger: it has no method (debug|error)$/,
    })
  }
})

const readme = readFileSync(new URL('../src/core/events.md', import.meta.url), 'utf8')

test('the table of events in the README is that of the source', () => {
  const rows = [...readme.matchAll(/^\| `(\w+)` \| (\w+) \|/gm)].map(([, ...row]) => row)
  assert.deepEqual(
    rows.toSorted(),
    Object.entries(eventTable)
      .map(([event, { level }]) => [event, level])
      .toSorted(),
  )
})

test('the search after a run finds a secret, a signature, data and a field of nobody', async () => {
  const documented = documentedFields(readme)
  const wrong = (fields: object): number => wrongIn([JSON.stringify(fields)], documented).length
  const event = 'request_refused'
  const { engine } = await opened()
  const { secret } = await engine.users.add()
  const signature = signatureOf('1700000000', secret, '{}')
  /** [what is told, how much is wrong] */
  const rows: readonly (readonly [object, number])[] = [
    [{ event, code: 'bad_signature', user: '13000' }, 0],
    [{ event: 'task_failed', obj_id: '6553f1000102030405000001', code: 'loop' }, 0],
    [{ event, code: 'bad_signature', user: secret }, 1],
    [{ event, code: signature }, 1],
    [{ event, code: `${planted}-data` }, 1],
    [{ event: 'store_failed', error: 'in {"a":1}' }, 1],
    [{ event: 'store_failed', error: [1] }, 1],
    [{ event: 'task_failed', data: 'a' }, 1],
    [{ event: 'no_such_event', code: 'x' }, 1],
  ]
  for (const [fields, count] of rows) assert.equal(wrong(fields), count, JSON.stringify(fields))
  // An engine that told the data of its ops would be found.
  const kept: string[] = []
  const keep = (told: object): void => void kept.push(JSON.stringify(told))
  const logger = { debug: keep, info: keep, warn: keep, error: keep }
  newLog(logger, fakeClock()).emit('op_refused', { data: `{"a":"${planted}"}` })
  assert.equal(wrongIn(kept, documented).length, 3)
  await engine.close()
})
