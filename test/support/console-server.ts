/**
 * An engine in memory with the operator's page, for tests in a browser: what they put into it is
 * what the page shows.
 */
import { type Engine, type EngineOptions, openEngine } from '../../src/index.ts'
import { type OperatorOptions, type OperatorServer, serveOperator } from '../../src/operator.ts'

export interface TestConsole {
  readonly engine: Engine
  readonly operator: OperatorServer
  /** The address of a view, such as `tasks`, for who is signed in. */
  at(view: string): string
  close(): Promise<void>
}

export async function openConsole(
  engine_options: EngineOptions = {},
  options: OperatorOptions = {},
): Promise<TestConsole> {
  const engine = await openEngine(':memory:', engine_options)
  const operator = await serveOperator(engine, { port: 0, ...options })
  return {
    ...{ engine, operator },
    at: (view) => `${operator.url}/console/${view}`,
    async close() {
      await operator.drain()
      await engine.close()
    },
  }
}
