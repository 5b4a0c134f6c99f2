/** `go`: sends the task to its node unconditionally. */
import type { Command, LogicKind } from '../logic.ts'

export const go: LogicKind<Command> = {
  type: 'go',
  parse(raw, report) {
    return { command: 'go', to_node_id: report.targetNode('to_node_id', raw.to_node_id) ?? '' }
  },
  run: (command) => command,
}
