/** `serve --demo` as a child process of `smoke`, started by the words of this program. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { parsePlain } from '../../codec/json.ts'
import type { Env, Io } from '../io.ts'

export interface DemoServer {
  readonly url: string
  readonly secret: string
  readonly child: ChildProcess
  /** Its exit code, or null where a signal ended it. */
  end(signal: 'SIGTERM' | 'SIGKILL'): Promise<number | null>
}

/** The environment without settings of conveyor, which would change what the child does. */
function plainEnv(env: Env): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('CONVEYOR_')))
}

/** Rejects with what it wrote on standard error where it does not listen. */
export async function startDemo({ command }: Io, env: Env, db: string): Promise<DemoServer> {
  const addresses = ['--http', '127.0.0.1:0', '--operator', 'off', '--grpc', 'off']
  const words = ['serve', '--demo', '--json', ...addresses, '--db', db]
  const [program = '', ...rest] = command
  const child = spawn(program, [...rest, ...words], {
    env: plainEnv(env),
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const closed = once(child, 'close').then(([code]) => code as number | null)
  let err = ''
  child.stderr?.on('data', (chunk) => {
    err = `${err}${String(chunk)}`.slice(-2_000)
  })
  const [line] = (await Promise.race([
    once(createInterface(child.stdout as NodeJS.ReadableStream), 'line'),
    closed.then(() => Promise.reject(new Error(err.trim() || 'it ended without a word'))),
  ])) as [string]
  const listening = parsePlain(line) as {
    readonly http: string
    readonly demo: { secret?: string }
  }
  return {
    url: listening.http,
    secret: listening.demo.secret ?? '',
    child,
    end(signal) {
      child.kill(signal)
      return closed
    },
  }
}
