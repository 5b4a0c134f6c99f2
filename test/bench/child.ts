/**
 * Calls from the run to its child processes, by name over Node's IPC channel, one at a time. An error
 * in the child rejects the call with the child's stack.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'

/** Arguments and results cross between processes: plain values only. */
export type Calls = Record<string, (...args: never[]) => unknown>

export interface Child<C extends Calls> {
  call<K extends keyof C & string>(
    name: K,
    ...args: Parameters<C[K]>
  ): Promise<Awaited<ReturnType<C[K]>>>
  /** Stops the process until `thaw`, so that its background work disturbs no other slot. */
  freeze(): void
  thaw(): void
  /** Lets the child exit by itself, so that it closes its files and writes its profile. */
  stop(): Promise<void>
  /** Kills the process at once. */
  kill(): void
}

/** A frozen child does not notice the end of the run, so it is killed. */
const frozen = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of frozen) child.kill('SIGKILL')
})

/** Starts a compiled script, with extra flags for Node. */
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

/** In the child: executes calls until the run disconnects, then calls `dispose` and exits. */
export function serveCalls(calls: Calls, dispose: () => Promise<void> = async () => {}): void {
  process.on('message', async ({ name, args }: { name: string; args: never[] }) => {
    try {
      process.send?.({ value: await calls[name]?.(...args) })
    } catch (error) {
      process.send?.({ error: error instanceof Error ? error.stack : String(error) })
    }
  })
  process.on('disconnect', async () => {
    await dispose()
    process.exit()
  })
}
