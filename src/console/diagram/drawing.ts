/**
 * The graph of a version of a process as it is drawn, as types: boxes with their places, and edges
 * between them with their routes and what they say. In pixels; plain data. Who draws it adds what
 * changes, such as counts.
 */

export interface Point {
  readonly x: number
  readonly y: number
}

export interface Box {
  readonly node_id: string
  readonly title: string
  readonly kind: 'logic' | 'start' | 'end' | 'escalation'
  /** What it does, in a few words, such as `callback, timer`. */
  readonly does: string
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}

export interface Edge {
  readonly from_node_id: string
  readonly to_node_id: string
  readonly kind: 'go' | 'error' | 'time'
  /** When it is taken, such as `amount > 1000`, `after 3 days`, `call fails`; empty for always. */
  readonly label: string
  /** The middle of the label; absent without one. */
  readonly label_at?: Point
  /** Its corners from the border of one box to that of the other, two at least. */
  readonly points: readonly Point[]
}

export interface Drawing {
  /** `drawn`: the places are those of the definition; `laid_out`: they were computed. */
  readonly places: 'drawn' | 'laid_out'
  readonly boxes: readonly Box[]
  readonly edges: readonly Edge[]
  /** What all of it takes; the upper left corner is at 0, 0. */
  readonly width: number
  readonly height: number
}

/** Names the edges between two nodes. Node ids may hold any character, so no separator would do. */
export function edgeKey(from_node_id: string, to_node_id: string): string {
  return JSON.stringify([from_node_id, to_node_id])
}
