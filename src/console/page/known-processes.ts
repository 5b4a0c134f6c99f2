/**
 * All processes by their ids, and the nodes of one: for choices, and for titles beside ids. Fetched
 * at most once a minute, for all views together.
 */
import { signal, useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { ProcessRow } from '../overview/messages.ts'
import { nameText } from './parts/name.tsx'
import { call } from './session.ts'

export type KnownProcess = Pick<ProcessRow, 'conv_id' | 'title' | 'status'>

export const processes = signal<ReadonlyMap<string, KnownProcess>>(new Map())

const fresh_ms = 60_000
let asked_ms = -fresh_ms

/** Without an answer the ids alone are shown. */
export async function learnProcesses(): Promise<void> {
  if (performance.now() - asked_ms < fresh_ms) return
  asked_ms = performance.now()
  try {
    const frame = await call('frame', { view: 'overview' })
    if (frame.view !== 'overview') return
    processes.value = new Map(frame.overview.processes.map((row) => [row.conv_id, row]))
  } catch {
    asked_ms = -fresh_ms
  }
}

export interface KnownNode {
  readonly node_id: string
  readonly title: string
}

/** A hook: the nodes by title, once they have come; empty without a process. */
export function useNodes(
  conv_id: string,
  onRefused: (fault: unknown) => void,
): readonly KnownNode[] {
  const nodes = useSignal<readonly KnownNode[]>([])
  useEffect(() => {
    nodes.value = []
    let is_over = false
    if (conv_id === '') return
    nodesOf(conv_id).then(
      (found) => {
        if (!is_over) nodes.value = found
      },
      (fault) => is_over || onRefused(fault),
    )
    return () => {
      is_over = true
    }
  }, [conv_id])
  return nodes.value
}

async function nodesOf(conv_id: string): Promise<readonly KnownNode[]> {
  const { drawing } = await call('process', { conv_id })
  return drawing.boxes
    .map(({ node_id, title }) => ({ node_id, title }))
    .sort((one, other) => one.title.localeCompare(other.title))
}

/** For the options of a field; a title that two nodes share is shown with their ids. */
export function nodeOptions(nodes: readonly KnownNode[]): (readonly [string, string])[] {
  const titles = nodes.map(({ title }) => title)
  return nodes.map(({ node_id, title }) => {
    const is_one = titles.indexOf(title) === titles.lastIndexOf(title)
    const name = nameText(title)
    return [node_id, title === '' ? node_id : is_one ? name : `${name} (${node_id})`]
  })
}
