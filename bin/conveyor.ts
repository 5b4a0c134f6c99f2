#!/usr/bin/env node
/**
 * The program `conveyor`: hands the process's arguments, environment and streams to the command
 * line, and takes the exit code from it. The only place that reads `process`.
 */
import { setTimeout as sleep_ms } from 'node:timers/promises'
import { main } from '../src/cli/main.ts'
import { systemClock } from '../src/core/clock.ts'

// A reader that has gone, as `conveyor task list … | head` leaves one, is no failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
  process.exit(0)
})

const { stdin, stdout, stderr, pid } = process

const exit_code = await main(process.argv.slice(2), process.env, {
  stdin,
  stdout,
  stderr,
  pid,
  clock: systemClock,
  sleep_ms: (ms) => sleep_ms(ms),
  onStop(fn) {
    let told = false
    const stop = (): void => {
      if (told) process.exit(1)
      told = true
      fn()
    }
    // Waiting for a signal keeps no process alive, so a timer does.
    const hold = setInterval(() => {}, 2 ** 31 - 1)
    process.on('SIGTERM', stop).on('SIGINT', stop)
    return () => {
      clearInterval(hold)
      process.off('SIGTERM', stop).off('SIGINT', stop)
    }
  },
  // An exit would wait for a thread that hangs in a write.
  kill: () => void process.kill(pid, 'SIGKILL'),
})
process.exitCode = exit_code
// What was left open by something that failed must not keep it.
setTimeout(() => process.exit(), 5_000).unref()
