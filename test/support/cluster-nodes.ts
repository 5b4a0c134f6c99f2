/** Engines as nodes of a cluster, in the process of a test and in others. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import type { Engine, EngineOptions } from '../../src/engine/api/engine-api.ts'
import { openEngine } from '../../src/open.ts'
import { type PostgresLog, type PostgresLogOptions, postgresLog } from '../../src/postgres.ts'
import { codePath, node_flags } from './package-folder.ts'

/** Its tasks wait for a callback. */
export const waiting = {
  ...JSON.parse(
    readFileSync(new URL('../../src/examples/callback.conv.json', import.meta.url), 'utf8'),
  ),
  obj_id: '1',
}

/** Of a node in a process of its own, whose owner is stopped or killed: so long a test waits. */
export const child_lease_ms = 600
/** So long that a busy machine does not let it run out. */
const lease_ms = 5_000

export interface TestNode {
  readonly log: PostgresLog
  readonly path: string
  readonly opened: Promise<Engine>
  /** Resolves once the node has this role. */
  role(role: string): Promise<void>
}

/** Opens an engine as the node `node`, whose data file is in `folder`. */
export function openNode(
  folder: string,
  options: PostgresLogOptions,
  more: EngineOptions = {},
): TestNode {
  const log = postgresLog({ lease_ms, address: `${options.node}:1`, ...options })
  const path = `${folder}/${options.node}.lmdb`
  const opened = openEngine(path, { commit_log: log, ...more })
  opened.catch(() => {})
  return {
    ...{ log, path, opened },
    role: (role) =>
      new Promise((resolve) => {
        if (log.status().role === role) return resolve()
        const end = log.onRole((status) => {
          if (status.role !== role) return
          end()
          resolve()
        })
      }),
  }
}

export interface ChildNode {
  readonly child: ChildProcess
  /** The next line that it says. */
  line(): Promise<Record<string, unknown>>
  ask(line: string): void
}

export function startChildNode(folder: string, url: string, node: string): ChildNode {
  const script = codePath('test/support/cluster-node-child')
  const args = [...node_flags, script, url, `${folder}/${node}.lmdb`, node, String(child_lease_ms)]
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  return {
    child,
    async line() {
      const { value, done } = await lines.next()
      if (done) throw new Error(`node ${node} has ended`)
      return JSON.parse(value)
    },
    ask: (line) => void child.stdin?.write(`${line}\n`),
  }
}

export async function killed(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const closed = once(child, 'close')
  child.kill('SIGKILL')
  await closed
}
