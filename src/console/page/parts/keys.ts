/**
 * Keyboard shortcuts of the page and of its views, with texts for the help that lists them. They
 * are off while a field has the focus or a dialog is open.
 */
import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'

export interface KeyRow {
  /** As the browser names it, such as `/` or `Escape`. */
  readonly key: string
  readonly does: string
  readonly act: () => void
}

/** Those of the views that are shown, the page's own first. */
export const keys = signal<readonly KeyRow[]>([])

/** A hook: the keys work while its component is there. `rows` are those of its first drawing. */
export function useKeys(rows: readonly KeyRow[]): void {
  useEffect(() => {
    keys.value = [...keys.value, ...rows]
    return () => {
      keys.value = keys.value.filter((row) => !rows.includes(row))
    }
  }, [])
}

document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return
  if (document.querySelector('dialog[open], :is(input, textarea, select):focus') !== null) return
  const row = keys.value.findLast(({ key }) => key === event.key)
  if (row === undefined) return
  event.preventDefault()
  row.act()
})
