/**
 * The dialog of an import: what it would do, or what is wrong with the file, or where the tasks of
 * dropped nodes go; and then its result. Each answer is of the file as it is checked now.
 */

import { type Signal, useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { ConsoleCalls, Imported, Mistake } from '../../server/messages.ts'
import { Button } from '../parts/button.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { Field } from '../parts/field.tsx'
import { Name } from '../parts/name.tsx'
import { set } from '../parts/set.ts'
import { FaultText, say } from '../parts/toasts.tsx'
import { go } from '../place.ts'
import { call, isCallFault } from '../session.ts'
import { type FileNode, nodesIn } from './nodes.ts'
import { ImportResults, MistakeList, WarningList } from './results.tsx'

type Input = Omit<ConsoleCalls['import']['in'], 'store'>

interface ImportDialogProps {
  readonly file: File
  readonly conv_id: string | undefined
  readonly onMistakes: ((mistakes: readonly Mistake[], node_id?: string) => void) | undefined
  readonly onStored: () => void
  readonly onClose: () => void
}

export function ImportDialog(props: ImportDialogProps) {
  const { file, conv_id, onMistakes, onStored, onClose } = props
  const input = useSignal<Input | undefined>(undefined)
  const nodes = useSignal<readonly FileNode[]>([])
  const checked = useSignal<Imported | undefined>(undefined)
  const fault = useSignal<unknown>(undefined)
  const dropped = useSignal<readonly Mistake[]>([])
  const is_checking = useSignal(true)

  async function check(wanted: Input): Promise<void> {
    input.value = wanted
    fault.value = undefined
    checked.value = undefined
    is_checking.value = true
    try {
      checked.value = await call('import', { ...wanted, store: false })
    } catch (error) {
      const is_dropped = isCallFault(error) && error.code === 'tasks_in_node'
      // What an earlier answer has asked for is still asked for.
      if (is_dropped) dropped.value = [...dropped.value, ...(error.mistakes ?? [])]
      else fault.value = error
    } finally {
      is_checking.value = false
    }
  }

  useEffect(() => {
    void (async () => {
      try {
        const { text, content_base64 } = await readFile(file)
        nodes.value = nodesIn(text)
        await check({ name: file.name, content_base64 })
      } catch (error) {
        is_checking.value = false
        fault.value = error
      }
    })()
  }, [file])

  async function store(): Promise<void> {
    if (input.value === undefined) return
    try {
      const { result } = await call('import', { ...input.value, store: true })
      const [only, ...others] = result.processes
      const is_elsewhere = only !== undefined && others.length === 0 && only.conv_id !== conv_id
      onClose()
      onStored()
      say(`${file.name} is imported.`)
      if (is_elsewhere) go({ name: 'process', conv_id: only.conv_id })
    } catch (error) {
      checked.value = undefined
      fault.value = error
    }
  }

  const { mistakes = [], warnings = [] } = isCallFault(fault.value) ? fault.value : {}
  const only = checked.value?.result.processes.length === 1 && checked.value.result.processes[0]
  return (
    <Dialog title="Import a file" onClose={onClose} is_wide>
      <div class="import" aria-live="polite">
        <p>
          <Name of={file.name} />
        </p>
        {is_checking.value && <p>Checking…</p>}
        {dropped.value.length > 0 && input.value && (
          <Moves
            dropped={dropped.value}
            nodes={nodes.value}
            check={(moves) => check({ ...(input.value as Input), moves })}
          />
        )}
        {mistakes.length > 0 && dropped.value.length === 0 ? (
          <MistakeList
            mistakes={mistakes}
            onOpen={
              onMistakes &&
              ((node_id) => {
                onClose()
                onMistakes(mistakes, node_id)
              })
            }
          />
        ) : (
          <FaultText fault={fault.value} />
        )}
        {warnings.length > 0 && <WarningList warnings={warnings} />}
        {checked.value && <ImportResults result={checked.value.result} />}
        {only && conv_id !== undefined && only.conv_id !== conv_id && (
          <p>
            This is another process than the one you look at.{' '}
            <Button act={() => check({ ...(input.value as Input), conv_id })}>
              Check it as a version of this one
            </Button>
          </p>
        )}
      </div>
      <footer>
        {checked.value && (
          <Button act={store} kind="main">
            Import
          </Button>
        )}
      </footer>
    </Dialog>
  )
}

interface MovesProps {
  readonly dropped: readonly Mistake[]
  readonly nodes: readonly FileNode[]
  check(moves: Readonly<Record<string, string>>): Promise<void>
}

/** For each node that the file drops while tasks are in it: the node where they go on. */
function Moves({ dropped, nodes, check }: MovesProps) {
  const chosen = useSignal<Readonly<Record<string, string>>>({})
  const ids = [...new Set(dropped.flatMap(({ node_id }) => node_id ?? []))]
  const is_missing = ids.some((id) => !chosen.value[id])
  return (
    <fieldset class="moves">
      <legend>Tasks are in nodes that this file does not have. Where do they go on?</legend>
      {ids.map((id) => (
        <MoveField
          key={id}
          of={dropped.find((one) => one.node_id === id)}
          {...{ id, nodes, chosen }}
        />
      ))}
      <Button
        act={() => check(chosen.value)}
        why_not={is_missing && 'Choose a node for each of them'}
      >
        Check again
      </Button>
    </fieldset>
  )
}

interface MoveFieldProps {
  readonly of: Mistake | undefined
  readonly id: string
  readonly nodes: readonly FileNode[]
  readonly chosen: Signal<Readonly<Record<string, string>>>
}

/** Of a file that only the server can read, such as an archive, the id of the node is typed. */
function MoveField({ of, id, nodes, chosen }: MoveFieldProps) {
  const value = useSignal('')
  const options = nodes.map((node) => [node.id, `${node.title || node.id}`] as const)
  return (
    <Field
      label={[of?.node_title, of?.text ?? id].filter(Boolean).join(': ')}
      value={value}
      hint={options.length === 0 ? 'The id of a node of the new definition' : undefined}
      {...(options.length === 0 ? {} : { options: [['', 'Choose a node'] as const, ...options] })}
      onChange={(to) => set(chosen, { ...chosen.value, [id]: to })}
    />
  )
}

/** Beyond this no server takes a file, and it is not read at all. */
const file_bytes_max = 256 * 1024 * 1024

export interface ReadFile {
  readonly content_base64: string
  readonly text: string
}

export async function readFile(file: File): Promise<ReadFile> {
  if (file.size > file_bytes_max) throw new Error('the file is too large for a definition')
  const url = await new Promise<string>((resolve, reject) => {
    const reader = new FileReader()
    reader.onload = () => resolve(String(reader.result))
    reader.onerror = () => reject(new Error('the file cannot be read'))
    reader.readAsDataURL(file)
  })
  return { content_base64: url.slice(url.indexOf(',') + 1), text: await file.text() }
}
