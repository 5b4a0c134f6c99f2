/**
 * The log of `serve` on standard error that blocks, fails or is slow: what is written, what is
 * dropped and counted, and that nothing waits for it. The pipes, files and errors are real ones.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { closeSync, constants, openSync, readFileSync, readSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { after, test } from 'node:test'
import { type LineStream, openLineStream } from '../src/cli/line-stream.ts'
import { newLineSink, waiting_bytes_max } from '../src/cli/serve/line-sink.ts'
import { openServeLog } from '../src/cli/serve/log.ts'
import { serveVerb } from '../src/cli/verbs/serve.ts'
import { run, tempFolder } from './support/cli-run.ts'
import { node_args, startServe } from './support/cli-serve.ts'
import { fakeClock } from './support/fake-clock.ts'

const folder = tempFolder()
after(folder.remove)

let pipes = 0

/** A pipe whose reader, the returned file, reads only when the test does. */
function newPipe(): number {
  const path = join(folder.path, `pipe-${++pipes}`)
  execFileSync('mkfifo', [path])
  return openSync(path, constants.O_RDWR | constants.O_NONBLOCK)
}

function fill(fd: number): void {
  const page = Buffer.alloc(4096, '.')
  for (;;) {
    try {
      writeSync(fd, page)
    } catch {
      return
    }
  }
}

function read(fd: number): string {
  const page = Buffer.alloc(1 << 16)
  try {
    return page.toString('utf8', 0, readSync(fd, page))
  } catch {
    return ''
  }
}

/** A sink whose lines are numbers. */
function numberSink(open: () => LineStream, clock = fakeClock()) {
  const sink = newLineSink({
    open,
    clock,
    emitDropped: (count) => sink.write(`dropped ${count}\n`),
  })
  return { sink, clock }
}

/** The numbers that came, and how many were told as dropped. */
function countOf(text: string): { written: number; dropped: number } {
  const lines = text.split('\n').filter((line) => line !== '')
  const told = lines.flatMap((line) => /^dropped (\d+)$/.exec(line)?.[1] ?? [])
  return {
    written: lines.length - told.length,
    dropped: told.reduce((sum, one) => sum + Number(one), 0),
  }
}

test('a pipe that nobody reads stops nothing, and what did not fit is told once it is read', async () => {
  const fd = newPipe()
  let opened: LineStream | undefined
  const { sink } = numberSink(() => (opened = openLineStream(fd)))
  const count = 50_000
  const line = (n: number): string => `${String(n).padEnd(99)}\n`
  for (let n = 0; n < count; n++) {
    sink.write(line(n))
    if (n % 1_000 === 0) await new Promise((resolve) => setImmediate(resolve))
  }
  const { stream } = opened as LineStream
  assert.ok(stream.writableLength <= waiting_bytes_max + 200, String(stream.writableLength))
  let text = ''
  while (!text.includes('dropped')) {
    const more = read(fd)
    text += more
    if (more === '') await new Promise((resolve) => setImmediate(resolve))
  }
  while (!text.endsWith('\n')) text += read(fd)
  const { written, dropped } = countOf(text)
  assert.ok(dropped > count / 2)
  assert.equal(written + dropped, count)
  assert.equal(await sink.close(1_000), 'written')
  stream.destroy()
  closeSync(fd)
})

test('a failed write has a line of its own, where LMDB has begun one and not ended it', async () => {
  let text = ''
  const stream = new Writable({
    write(line, _, done) {
      text += line
      done()
    },
  })
  const io = { lines: () => ({ stream, holds_thread: false }), clock: fakeClock(), kill() {} }
  const given = { verb: serveVerb, words: [], flags: {}, env: {} }
  const log = await openServeLog(given, io)
  for (const event of ['store_failed', 'checkpoint_failed', 'schedule_refused'] as const) {
    text += 'Write error'
    log.emit(event, {})
  }
  await log.close()
  const events = [...text.matchAll(/^{.*"event":"([a-z_]+)"/gm)].map(([, event]) => event)
  assert.deepEqual(events, ['store_failed', 'checkpoint_failed'])
})

test('a file that takes nothing is opened anew after a second, and what it lost is told', async () => {
  const path = join(folder.path, 'lines')
  let fd = openSync('/dev/full', 'w')
  let opens = 0
  const { sink, clock } = numberSink(() => {
    opens++
    return openLineStream(fd)
  })
  for (let n = 0; n < 3; n++) sink.write('lost\n')
  assert.equal(await sink.close(1_000), 'written')
  const second = numberSink(() => {
    opens++
    if (opens === 3) throw new Error('it is gone')
    return openLineStream(fd)
  }, clock)
  second.sink.write('lost\n')
  await new Promise((resolve) => setTimeout(resolve, 20))
  second.sink.write('lost\n')
  assert.equal(opens, 2, 'not before its time')
  fd = openSync(path, 'w')
  clock.advance(1_000)
  second.sink.write('lost\n')
  // A clock that is set back silences nothing.
  clock.set(clock.now_ms() - 3_600_000)
  second.sink.write('written\n')
  assert.equal(await second.sink.close(1_000), 'written')
  assert.equal(readFileSync(path, 'utf8'), 'dropped 3\nwritten\n')
  second.sink.write('too late\n')
  closeSync(fd)
})

test('a reader that has gone is no failure', async () => {
  const path = join(folder.path, 'broken')
  execFileSync('mkfifo', [path])
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  const fd = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK)
  const { sink, clock } = numberSink(() => openLineStream(fd))
  sink.write('one\n')
  assert.equal(await sink.close(1_000), 'written')
  assert.equal(read(reader), 'one\n')
  closeSync(reader)
  const late = numberSink(() => openLineStream(fd), clock)
  for (let n = 0; n < 3; n++) {
    late.sink.write('two\n')
    clock.advance(1_000)
    await new Promise((resolve) => setImmediate(resolve))
  }
  assert.equal(await late.sink.close(1_000), 'written')
  closeSync(fd)
})

test('serve answers and ends in time where standard error is a full pipe', async () => {
  const fd = newPipe()
  fill(fd)
  const db = join(folder.path, 'tasks.lmdb')
  const args = ['serve', '--json', '--http', '127.0.0.1:0', '--db', db, '--log-level', 'trace']
  const served = await startServe([process.execPath, ...node_args, ...args], fd)
  const refused = await fetch(`${served.url}/x`, { method: 'POST' })
  assert.equal(refused.status, 404)
  const added = await run(['user', 'add', '--db', db])
  assert.equal(added.exit, 0, added.err)
  assert.equal(await served.stop(), 0)
  closeSync(fd)
})

test('serve writes its last lines, from the wanted level on', async () => {
  const args = ['serve', '--json', '--http', '127.0.0.1:0', '--db']
  /** [level, the events] */
  const rows = [
    ['info', ['opened', 'listening', 'draining', 'closed']],
    ['silent', []],
  ] as const
  for (const [level, events] of rows) {
    const db = join(folder.path, `${level}.lmdb`)
    const { exit, err } = await run([...args, db, '--log-level', level], {
      onWait: (stop) => setTimeout(stop, 0),
    })
    assert.equal(exit, 0, err)
    // That nothing is told at `silent` is said once, outside the log.
    const lines = err.split('\n').filter((line) => line !== '' && !line.startsWith('conveyor: '))
    const told = lines.map((line) => (JSON.parse(line) as { event: string }).event)
    // What is risky depends on the machine.
    assert.deepEqual(
      told.filter((event) => event !== 'risky'),
      events,
    )
  }
  const odd = await run([...args, join(folder.path, 'odd.lmdb'), '--log-level', 'loud'])
  assert.equal(odd.exit, 2)
  assert.match(odd.err, /--log-level is one of trace, debug, info/)
})
