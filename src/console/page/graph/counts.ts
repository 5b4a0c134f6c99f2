/**
 * The live counts of a process as one signal per node and per edge, so that a frame redraws only
 * what it has changed. A frame with very many changes is drawn in parts, so that the page stays
 * smooth.
 */
import { batch, type ReadonlySignal, type Signal, signal } from '@preact/signals'
import type { Status } from '../../../core/model.ts'
import { edgeKey } from '../../diagram/drawing.ts'
import type { NodeCounts, ProcessCounts } from '../../overview/messages.ts'
import { countText, rateText, status_words, statuses } from '../parts/texts.ts'

export type Counts = Pick<NodeCounts, 'by_status' | 'due_soon'>

export interface GraphCounts {
  readonly last: ReadonlySignal<ProcessCounts | undefined>
  /** The edges that have had a rate, by `edgeKey`. */
  readonly flowing: ReadonlySignal<readonly string[]>
  of(node_id: string): ReadonlySignal<Counts>
  rateOf(key: string): ReadonlySignal<number>
  take(frame: ProcessCounts): void
}

const none: Counts = { by_status: {}, due_soon: 0 }
/** So many of them are drawn in one animation frame. */
const changes_max = 160

export function newGraphCounts(): GraphCounts {
  const last = signal<ProcessCounts | undefined>(undefined)
  const flowing = signal<readonly string[]>([])
  const nodes = new Map<string, Signal<Counts>>()
  const rates = new Map<string, Signal<number>>()
  /** Changes that are not drawn yet. A newer frame replaces them. */
  const changes = new Map<string, () => void>()
  let next = 0

  const of = (node_id: string): Signal<Counts> => made(nodes, node_id, none)
  const rateOf = (key: string): Signal<number> => made(rates, key, 0)

  function draw(): void {
    next = 0
    let drawn = 0
    batch(() => {
      for (const [key, change] of changes) {
        if (drawn++ === changes_max) break
        changes.delete(key)
        change()
      }
    })
    if (changes.size > 0) next = requestAnimationFrame(draw)
  }

  return {
    last,
    flowing,
    of,
    rateOf,
    take(frame) {
      const counts = new Map(frame.nodes.map((node) => [node.node_id, node]))
      for (const node_id of counts.keys()) of(node_id)
      for (const [node_id, node] of nodes) {
        const now = counts.get(node_id) ?? none
        const change = (): void => {
          node.value = now
        }
        const key = `node ${node_id}`
        if (isSame(node.peek(), now)) changes.delete(key)
        else changes.set(key, change)
      }
      const per_s = new Map(
        frame.edges.map((edge) => [edgeKey(edge.from_node_id, edge.to_node_id), edge.per_s]),
      )
      const added = [...per_s.keys()].filter((key) => !rates.has(key))
      for (const key of added) rateOf(key)
      for (const [key, rate] of rates) {
        changes.set(`edge ${key}`, () => {
          rate.value = per_s.get(key) ?? 0
        })
      }
      if (added.length > 0) flowing.value = [...flowing.peek(), ...added]
      last.value = frame
      if (next === 0) draw()
    },
  }
}

function made<Value>(all: Map<string, Signal<Value>>, key: string, first: Value): Signal<Value> {
  const found = all.get(key) ?? signal(first)
  all.set(key, found)
  return found
}

function isSame(one: Counts, other: Counts): boolean {
  return (
    one.due_soon === other.due_soon &&
    statuses.every((status) => one.by_status[status] === other.by_status[status])
  )
}

export function totalsOf(frame: ProcessCounts | undefined): Counts['by_status'] {
  const totals: Partial<Record<Status, number>> = {}
  for (const { by_status } of frame?.nodes ?? []) {
    for (const status of statuses) {
      totals[status] = (totals[status] ?? 0) + (by_status[status] ?? 0)
    }
  }
  return totals
}

/** Such as `2 failed, 12 waiting, 1 due soon`; empty where there is nothing. */
export function inWords({ by_status, due_soon }: Counts): string {
  const words = statuses.flatMap((status) => {
    const tasks = by_status[status] ?? 0
    return tasks === 0 ? [] : [`${countText(tasks)} ${status_words[status]}`]
  })
  return [...words, ...(due_soon === 0 ? [] : [`${due_soon} due soon`])].join(', ')
}

/** A rate in few characters: `1 200/s`, `2.5/s`, or `6/min` where it is less than one a second. */
export function flowText(per_s: number): string {
  return per_s < 1 ? `${Math.max(1, Math.round(per_s * 60))}/min` : `${rateText(per_s)}/s`
}
