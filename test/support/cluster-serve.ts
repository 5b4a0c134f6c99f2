/**
 * `conveyor serve` as nodes of a cluster, each a process of its own over a database of a test.
 */
import { join } from 'node:path'
import { rowsOf } from './cli-run.ts'
import { node_args, type Served, startServe } from './cli-serve.ts'

export type Row = Readonly<Record<string, unknown>>

export interface NodeProcess extends Served {
  readonly db: string
  readonly operator: string
  /** Resolves with the line of stdout that says that it has this role, after `from` of them. */
  role(role: string, from?: number): Promise<Row>
  /** The roles that it has had, as stdout, or as the log tells them. */
  roles(): string[]
  logged(): string[]
  /** Status and body of a path of the operator's listener. */
  ask(path: string): Promise<{ readonly status: number; readonly body: Row }>
}

export async function startNode(
  url: string,
  folder: string,
  node: string,
  more: readonly string[] = [],
): Promise<NodeProcess> {
  const db = join(folder, `${node}.lmdb`)
  const free = ['--http', '127.0.0.1:0', '--operator', '127.0.0.1:0']
  const of_node = ['--commit-log', url, '--node', node, '--lease-ms', '1000', '--db', db]
  const command = [process.execPath, ...node_args, 'serve', '--json', ...of_node, ...free, ...more]
  const served = await startServe(command)
  const operator = String(served.line.operator)
  // A line may be there in part.
  const told = (): Row[] => rowsOf(served.out().replace(/[^\n]*$/, ''))
  const roles = (): string[] =>
    told()
      .filter(({ event }) => event === 'role')
      .map(({ role }) => String(role))
  return {
    ...{ ...served, db, operator, roles },
    role(wanted, from = 0) {
      return new Promise((resolve, reject) => {
        const look = (): void => {
          const found = told()
            .filter(({ event }) => event === 'role')
            .slice(from)
            .find(({ role }) => role === wanted)
          if (found === undefined) return
          served.child.stdout?.off('data', look)
          resolve(found)
        }
        served.child.stdout?.on('data', look)
        served.child.once('close', () => reject(new Error(`${node} ended: ${served.err()}`)))
        look()
      })
    },
    logged: () =>
      rowsOf(served.err().replace(/[^\n]*$/, ''))
        .filter(({ event }) => event === 'role')
        .map(({ role }) => String(role)),
    async ask(path) {
      const response = await fetch(`${operator}${path}`)
      const text = await response.text()
      const body = path === '/metrics' ? { text } : (JSON.parse(text) as Row)
      return { status: response.status, body }
    },
  }
}
