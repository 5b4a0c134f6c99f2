/** `go`: moves on to its node, whatever the data. */
import type { LogicKind, Move } from '../logic.ts'

export const go: LogicKind<Move> = {
  type: 'go',
  parse(raw, report) {
    return { move: 'go', to_node_id: report.target('to_node_id', raw.to_node_id) ?? '' }
  },
  run: (move) => move,
}
