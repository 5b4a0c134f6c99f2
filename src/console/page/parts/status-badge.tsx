/** A status as a word, with a colour and a shape for who sees them: never by colour alone. */
import type { Status } from '../../../core/model.ts'
import type { ProcessRow } from '../../overview/messages.ts'
import { status_words } from './texts.ts'

type Badge = Status | ProcessRow['status'] | 'fine' | 'wrong' | 'soon'

const looks: Readonly<Record<Badge, 'good' | 'warn' | 'bad' | 'live' | 'quiet'>> = {
  processing: 'live',
  delayed: 'live',
  failed: 'bad',
  processed: 'good',
  canceled: 'quiet',
  active: 'good',
  paused: 'warn',
  draft: 'quiet',
  fine: 'good',
  wrong: 'bad',
  soon: 'warn',
}

const words: Readonly<Record<string, string>> = status_words

/** `word` where another one says it better. */
export function StatusBadge({ status, word }: { readonly status: Badge; readonly word?: string }) {
  return <span class={`badge ${looks[status]}`}>{word ?? words[status] ?? status}</span>
}
