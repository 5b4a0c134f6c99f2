/** The mistakes of a file that was refused: a list, and above the graph whose nodes have them. */

import type { Mistake } from '../../server/messages.ts'
import { Button } from '../parts/button.tsx'
import { set } from '../parts/set.ts'
import type { ProcessState } from '../process/state.ts'

interface MistakeListProps {
  readonly mistakes: readonly Mistake[]
  /** Shows the node in the graph. */
  readonly onOpen: ((node_id: string) => void) | undefined
}

export function MistakeList({ mistakes, onOpen }: MistakeListProps) {
  return (
    <>
      <p class="fault" role="alert">
        {mistakes.length === 1 ? 'One mistake' : `${mistakes.length} mistakes`}; nothing is stored.
      </p>
      <ul class="mistakes">
        {mistakes.map(({ text, node_id, node_title }, at) => (
          <li key={at}>
            {node_id !== undefined && onOpen && (
              <button type="button" class="link" onClick={() => onOpen(node_id)}>
                <bdi>{node_title || node_id}</bdi>
              </button>
            )}{' '}
            <bdi>{text}</bdi>
          </li>
        ))}
      </ul>
    </>
  )
}

/** Above the graph, until they are put away. */
export function Mistakes({ state }: { readonly state: ProcessState }) {
  const { mistakes, in_sight } = state
  if (mistakes.value.length === 0) return null
  return (
    <section class="panel mistakes-panel" aria-label="Mistakes of the file">
      <MistakeList
        mistakes={mistakes.value}
        onOpen={(node_id) => {
          in_sight.value = undefined
          in_sight.value = node_id
        }}
      />
      <Button act={() => set(mistakes, [])}>Put away</Button>
    </section>
  )
}
