/**
 * `api_callback`: rests the task until a modify; then the logics behind it run. `is_sync` and
 * `obj_id_path` belong to the public callback URL, which is not served: kept in the definition,
 * ignored.
 */
import type { LogicKind, Move } from '../logic.ts'

const rest: Move = { move: 'rest' }

export const apiCallback: LogicKind<undefined> = {
  type: 'api_callback',
  is_wait: true,
  parse: () => undefined,
  run: () => rest,
}
