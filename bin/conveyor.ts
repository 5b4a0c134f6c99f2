#!/usr/bin/env node
/**
 * The program `conveyor`: passes the process's arguments, environment, streams and signals to the
 * command line and exits with its code. The only file that uses `process` for that.
 */
import { setTimeout as sleep_ms } from 'node:timers/promises'
import { openLineStream } from '../src/cli/line-stream.ts'
import { main } from '../src/cli/main.ts'
import { programOf } from '../src/cli/program.ts'
import { keepAlive, systemClock } from '../src/core/clock.ts'

// A closed pipe, as after `conveyor task list … | head`, is no failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
  process.exit(0)
})

const { stdin, stdout, stderr, pid } = process

function isAlive(of: number): boolean {
  try {
    return process.kill(of, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

// process.exit would wait for a thread that hangs in a write, deaf to any further signal.
const kill = (): void => void process.kill(pid, 'SIGKILL')

// What a verb waits for may be nothing but a clock.
const release = keepAlive()
const exit_code = await main(process.argv.slice(2), process.env, {
  stdin,
  stdout,
  stderr,
  lines: () => openLineStream(stderr.fd),
  pid,
  command: [process.execPath, ...process.execArgv, process.argv[1] ?? ''],
  node: process.version,
  isAlive,
  program: programOf(process.argv[1] ?? '', process.env),
  clock: systemClock,
  sleep_ms: (ms) => sleep_ms(ms),
  onStop(fn) {
    let is_stopping = false
    const stop = (): void => {
      if (is_stopping) kill()
      is_stopping = true
      fn()
    }
    // A signal handler does not keep the process alive; this timer does.
    const hold = setInterval(() => {}, 2 ** 31 - 1)
    process.on('SIGTERM', stop).on('SIGINT', stop)
    return () => {
      clearInterval(hold)
      process.off('SIGTERM', stop).off('SIGINT', stop)
    }
  },
  ...(stdin.isTTY && {
    keys(onKey: (key: string) => void) {
      const onData = (data: Buffer): void => onKey(data.toString('utf8'))
      stdin.setRawMode(true).on('data', onData).resume()
      return () => void stdin.setRawMode(false).off('data', onData).pause()
    },
  }),
  kill,
})
release()
process.exitCode = exit_code
// Bounds how long handles left open by a failure keep the process alive.
setTimeout(() => process.exit(), 5_000).unref()
