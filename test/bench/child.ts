/**
 * The two ends between the run and its child processes: a table of calls, asked by name over node's
 * own channel. One call at a time; a throw in the child ends the run with the child's stack.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'

/** What is taken and answered crosses between processes: plain values only. */
export type Calls = Record<string, (...args: never[]) => unknown>

export interface Child<C extends Calls> {
  call<K extends keyof C & string>(
    name: K,
    ...args: Parameters<C[K]>
  ): Promise<Awaited<ReturnType<C[K]>>>
  /** No turn of its process until `thaw`: what it does by itself falls on no other slot. */
  freeze(): void
  thaw(): void
  /** Lets the child end by itself, so that what it has open is closed and a profile is written. */
  stop(): Promise<void>
  /** Now, whatever it is at. */
  kill(): void
}

/** These would never hear that the run has ended. */
const frozen = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of frozen) child.kill('SIGKILL')
})

/** Starts a compiled file. `node_flags` go to its node. */
export function startChild<C extends Calls>(file: string, node_flags: string[] = []): Child<C> {
  const child = fork(file, { execArgv: ['--expose-gc', ...node_flags], serialization: 'advanced' })
  const exit = once(child, 'exit')
  return {
    async call(name, ...args) {
      const answer = once(child, 'message')
      child.send({ name, args })
      const [message] = await Promise.race([
        answer,
        exit.then(([code]) => [{ error: `${file} ended with ${code}` }]),
      ])
      if (message.error !== undefined) throw new Error(message.error)
      return message.value
    },
    freeze() {
      frozen.add(child)
      child.kill('SIGSTOP')
    },
    thaw() {
      frozen.delete(child)
      child.kill('SIGCONT')
    },
    kill: () => void child.kill('SIGKILL'),
    async stop() {
      if (child.connected) child.disconnect()
      await exit
    },
  }
}

/** The child's end: answers calls until the run lets go, then `leave`s and ends. */
export function serveCalls(calls: Calls, leave: () => Promise<void> = async () => {}): void {
  process.on('message', async ({ name, args }: { name: string; args: never[] }) => {
    try {
      process.send?.({ value: await calls[name]?.(...args) })
    } catch (error) {
      process.send?.({ error: error instanceof Error ? error.stack : String(error) })
    }
  })
  process.on('disconnect', async () => {
    await leave()
    process.exit()
  })
}
