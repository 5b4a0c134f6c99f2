/**
 * `conveyor-engine/console`: the operator's page, for a server of your own. Importing it starts
 * nothing; `createConsole(engine, options)` does. `serveOperator` serves it without this.
 */
export {
  type Console,
  type CreateConsoleOptions,
  createConsole,
} from './console/server/create-console.ts'
export type { Right } from './console/server/messages.ts'
export type { Authorized } from './console/server/source.ts'
