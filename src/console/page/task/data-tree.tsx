/**
 * Data as a tree of its unfolded rows. Names and values are isolated text, characters that turn the
 * direction of writing are shown as escapes, and long texts are cut until expanded. With `edit`
 * values are changed in place.
 */

import { useSignal } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import { Button } from '../parts/button.tsx'
import { set } from '../parts/set.ts'
import { countText, shownText } from '../parts/texts.ts'
import { mask, type Path, shortened } from './data-changes.ts'
import { type DataRow, pathText, rowsOf, shown_members } from './data-rows.ts'
import { type Exact, type ExactObject, exactText, isExactObject, isList } from './exact-json.ts'
import { ValueEditor } from './value-editor.tsx'

export interface TreeEdit {
  /** The members of the top level that differ from those of the task. */
  readonly changed: ReadonlySet<string>
  /** `undefined` removes what is there. */
  put(path: Path, value: Exact | undefined): void
}

interface DataTreeProps {
  readonly data: ExactObject
  readonly search: string
  readonly edit?: TreeEdit | undefined
}

const row_chars_max = 200

export function DataTree({ data, search, edit }: DataTreeProps) {
  const open = useSignal<ReadonlyMap<string, boolean>>(new Map())
  const lengths = useSignal<ReadonlyMap<string, number>>(new Map())
  /** The row that is being edited, and whether it is another member of it. */
  const edited = useSignal<{ readonly key: string; readonly is_new: boolean } | undefined>(
    undefined,
  )
  const rows = useMemo(
    () => rowsOf(data, { open: open.value, lengths: lengths.value, search }),
    [data, open.value, lengths.value, search],
  )
  const close = () => set(edited, undefined)
  const row = (one: DataRow) => {
    if (one.more !== undefined) {
      const key = one.key.slice(0, -1)
      const next = (lengths.value.get(key) ?? shown_members) + 5 * shown_members
      return (
        <Button kind="quiet" act={() => set(lengths, new Map(lengths.value).set(key, next))}>
          {countText(one.more)} more …
        </Button>
      )
    }
    const is_edited = edited.value?.key === one.key
    return (
      <>
        <RowHead
          row={one}
          toggle={() => set(open, new Map(open.value).set(one.key, !one.is_open))}
        />
        {is_edited && edit !== undefined && !edited.value?.is_new ? (
          <ValueEditor
            value={one.value}
            onPut={(_, value) => {
              edit.put(one.path, value)
              close()
            }}
            onClose={close}
          />
        ) : (
          <Value value={one.value} search={search} />
        )}
        {edit !== undefined && !is_edited && (
          <RowEdits
            row={one}
            edit={edit}
            onEdit={(is_new) => {
              edited.value = { key: one.key, is_new }
              if (is_new) open.value = new Map(open.value).set(one.key, true)
            }}
          />
        )}
        {is_edited && edit !== undefined && edited.value?.is_new && (
          <AddEditor row={one} edit={edit} onClose={close} />
        )}
      </>
    )
  }
  const top: DataRow = { key: '', path: [], value: data, size: data.size, is_open: true }
  return (
    <div class="data-tree">
      {rows.length === 0 && (
        <p class="quiet-text">{search === '' ? 'It is empty.' : 'Not found.'}</p>
      )}
      <ul>
        {rows.map((one) => (
          <li
            key={one.key}
            class={edit?.changed.has(String(one.path[0])) ? 'changed' : undefined}
            style={{ '--level': Math.min(one.path.length - (one.more === undefined ? 1 : 0), 16) }}
          >
            {one.path.length > 17 && <span class="level">{one.path.length}</span>}
            {row(one)}
          </li>
        ))}
      </ul>
      {edit !== undefined &&
        (edited.value?.key === '' ? (
          <AddEditor row={top} edit={edit} onClose={close} />
        ) : (
          <Button kind="quiet" act={() => set(edited, { key: '', is_new: true })}>
            + Member
          </Button>
        ))}
    </div>
  )
}

function RowHead({ row, toggle }: { readonly row: DataRow; readonly toggle: () => void }) {
  const { path, size, is_open } = row
  const name = shownText(shortened(String(path.at(-1)), row_chars_max))
  if (size === undefined || size === 0) {
    return (
      <span class="name" title={titleOf(path)}>
        <bdi>{name}</bdi>
      </span>
    )
  }
  return (
    <button
      type="button"
      class="name fold"
      aria-expanded={is_open}
      title={titleOf(path)}
      onClick={toggle}
    >
      <bdi>{name}</bdi>
    </button>
  )
}

const title_steps_max = 40

/** As a condition and a template name it; of a deep one its end. */
function titleOf(path: Path): string {
  if (path.length <= title_steps_max) return shownText(shortened(pathText(path), 1_000))
  return `… ${titleOf(path.slice(-title_steps_max))}`
}

function Value({ value, search }: { readonly value: Exact; readonly search: string }) {
  const is_whole = useSignal(false)
  if (isList(value)) return <span class="size">{sizeText(value.length, 'item', '[]')}</span>
  if (isExactObject(value)) return <span class="size">{sizeText(value.size, 'member', '{}')}</span>
  if (value === mask) {
    return (
      <span class="masked" title="The process hides this value from the page">
        {mask} hidden
      </span>
    )
  }
  const text = exactText(value)
  const kind = typeof value === 'string' ? 'text' : value === null ? 'null' : 'number'
  const is_long = text.length > row_chars_max
  const shown = is_long && !is_whole.value ? around(text, search) : text
  return (
    <span class={`value ${kind} ${is_long && is_whole.value ? 'whole' : ''}`}>
      <bdi>
        <Marked text={shownText(shown)} search={search} />
      </bdi>
      {is_long && (
        <Button
          kind="quiet"
          is_expanded={is_whole.value}
          act={() => set(is_whole, !is_whole.value)}
        >
          {is_whole.value ? 'less' : `all ${countText(text.length)} characters`}
        </Button>
      )}
    </span>
  )
}

/** The beginning of a long text, or the part in which it was found. */
function around(text: string, search: string): string {
  const at = search === '' ? -1 : text.toLowerCase().indexOf(search.toLowerCase())
  if (at < row_chars_max - 40) return shortened(text, row_chars_max)
  return `…${shortened(text.slice(at - 40), row_chars_max).replace(/^[\udc00-\udfff]/, '')}`
}

function Marked({ text, search }: { readonly text: string; readonly search: string }) {
  const at = search === '' ? -1 : text.toLowerCase().indexOf(search.toLowerCase())
  if (at === -1) return <>{text}</>
  const end = at + search.length
  return (
    <>
      {text.slice(0, at)}
      <mark>{text.slice(at, end)}</mark>
      {text.slice(end)}
    </>
  )
}

function sizeText(size: number, what: string, empty: string): string {
  return size === 0 ? empty : size === 1 ? `1 ${what}` : `${countText(size)} ${what}s`
}

interface RowEditsProps {
  readonly row: DataRow
  readonly edit: TreeEdit
  readonly onEdit: (is_new: boolean) => void
}

function RowEdits({ row: { path, value, size }, edit, onEdit }: RowEditsProps) {
  const name = shortened(titleOf(path), 60)
  const another = isList(value) ? '+ Item' : '+ Member'
  return (
    <span class="row-edits">
      <Button kind="quiet" label={`Change ${name}`} act={() => onEdit(false)}>
        Change
      </Button>
      {size !== undefined && (
        <Button kind="quiet" label={`${another} of ${name}`} act={() => onEdit(true)}>
          {another}
        </Button>
      )}
      {/* What a modify leaves out at the top stays. */}
      {path.length > 1 && (
        <Button kind="quiet" label={`Remove ${name}`} act={() => edit.put(path, undefined)}>
          Remove
        </Button>
      )}
    </span>
  )
}

interface AddEditorProps {
  readonly row: DataRow
  readonly edit: TreeEdit
  readonly onClose: () => void
}

function AddEditor({ row: { path, value }, edit, onClose }: AddEditorProps) {
  const taken = isExactObject(value) ? value : undefined
  return (
    <ValueEditor
      value=""
      taken={taken}
      onPut={(name, put) => {
        edit.put([...path, isList(value) ? value.length : name], put)
        onClose()
      }}
      onClose={onClose}
    />
  )
}
