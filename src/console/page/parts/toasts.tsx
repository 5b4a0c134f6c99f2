/**
 * Short messages on what was done or refused, announced to screen readers. Messages of success
 * disappear by themselves; refusals stay until they are closed.
 */
import { signal } from '@preact/signals'
import { isCallFault } from '../session.ts'
import { sentenceText, shownText } from './texts.ts'

interface Toast {
  readonly id: number
  readonly text?: string
  readonly fault?: unknown
}

const good_ms = 6_000
const toasts_max = 4
const toasts = signal<readonly Toast[]>([])
let last_id = 0

export function say(text: string): void {
  const { id } = add({ text })
  setTimeout(() => close(id), good_ms)
}

export function sayFault(fault: unknown): void {
  add({ fault })
}

function add(what: Omit<Toast, 'id'>): Toast {
  last_id += 1
  const toast = { id: last_id, ...what }
  toasts.value = [...toasts.value, toast].slice(-toasts_max)
  return toast
}

function close(closed: number): void {
  toasts.value = toasts.value.filter(({ id }) => id !== closed)
}

export function Toasts() {
  return (
    <div class="toasts" role="log" aria-live="polite" aria-label="Messages">
      {toasts.value.map(({ id, text, fault }) => (
        <div key={id} class={fault === undefined ? 'toast' : 'toast bad'}>
          {fault === undefined ? <p>{text}</p> : <FaultText fault={fault} />}
          <button type="button" class="close" aria-label="Close" onClick={() => close(id)}>
            ×
          </button>
        </div>
      ))}
    </div>
  )
}

export function FaultText({ fault }: { readonly fault: unknown }) {
  if (fault === undefined) return null
  const text = fault instanceof Error ? fault.message : String(fault)
  return (
    <p class="fault" role="alert">
      {shownText(sentenceText(text))} {isCallFault(fault) && <code>{fault.code}</code>}
    </p>
  )
}
