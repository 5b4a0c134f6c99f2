/** `go`: sends the task to its node unconditionally. */
import type { Command, LogicKind } from '../logic.ts'

export const go: LogicKind = {
  type: 'go',
  compile(raw, report) {
    const to_node_id = report.targetNode('to_node_id', raw.to_node_id) ?? ''
    const command: Command = { command: 'go', to_node_id }
    return { run: () => command }
  },
}
