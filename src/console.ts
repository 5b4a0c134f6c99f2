/**
 * `conveyor-engine/console`: the operator's page, for a server of your own. Importing it starts
 * nothing; `createConsole(engine, options)` does. `serveOperator` serves it without this.
 */
export {
  type Console,
  type CreateConsoleOptions,
  createConsole,
} from './server/console/create-console.ts'
export type { Right } from './server/console/messages.ts'
export type { Authorized } from './server/console/source.ts'
