/** A draft's life in steps, and what a file shows of it after each. */
import type { Engine } from '../../src/engine/api/engine-api.ts'
import { definition, node } from './http-server.ts'

export const edited_process = definition(77, [
  node('start', 1, [{ type: 'go', to_node_id: 'wait' }]),
  node('wait', 0, [{ type: 'api_callback' }, { type: 'go', to_node_id: 'end' }]),
  node('end', 2, []),
])

const first = (engine: Engine) => engine.processes.draft(77)
const second = (engine: Engine) => engine.processes.draft(77, { user: 13000 })
const waiting = (id: string, to: string): object =>
  node(id, 0, [{ type: 'api_callback' }, { type: 'go', to_node_id: to }])

/** [what, the step] */
export const draft_steps: readonly (readonly [string, (engine: Engine) => Promise<unknown>])[] = [
  ['opens a draft', (engine) => first(engine).putNode(waiting('next', 'end'))],
  ['edits it', (engine) => first(engine).putNode(waiting('wait', 'next'))],
  ['opens a second one', (engine) => second(engine).removeNode('wait')],
  [
    'replaces it whole',
    (engine) => first(engine).put(definition(77, [...kept, waiting('next', 'end')])),
  ],
  ['confirms it', (engine) => first(engine).confirm({ moves: { wait: 'next' } })],
  ['discards the second one', (engine) => second(engine).discard()],
]

const kept = [node('start', 1, [{ type: 'go', to_node_id: 'next' }]), node('end', 2, [])]

/** A user, the process and a task that waits in it. */
export async function beginDrafts(engine: Engine): Promise<void> {
  await engine.users.add({ id: 13000 })
  await engine.processes.put(edited_process)
  await engine.create({ conv_id: 77, ref: 'a', data: {} })
}

/** As text, so that states compare. */
export async function draftsState(engine: Engine): Promise<string> {
  const { version, hash } = await engine.processes.show(77)
  const drafts = await Promise.all([first(engine).show(), second(engine).show()])
  const seen = drafts.map((draft) => draft && [draft.base, draft.changes, draft.definition_text])
  return JSON.stringify({ version, hash, seen })
}
