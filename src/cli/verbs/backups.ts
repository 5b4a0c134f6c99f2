/** `backups …`: what a target of continuous backup has, whether it is whole, and what may go. */
import { systemChance } from '../../core/clock.ts'
import { type Exit, exits, usageError } from '../exit-codes.ts'
import type { Io } from '../io.ts'
import { printDone, printList } from '../output.ts'
import { linesText, timeText } from '../text.ts'
import { type Flag, flag, type Given, json_flag, text, type Verb, verbOf, word } from '../verb.ts'

const day_ms = 86_400_000

const keep_flags: readonly Flag[] = [
  flag('keep-days N', 'every moment of so many days can still be restored', { no_env: true }),
  flag('keep N', 'so many snapshots stay at least (2)', { no_env: true }),
]

export const backupsVerbs: readonly Verb[] = [
  verbOf('backups list FOLDER', {
    flags: [json_flag],
    says: 'list what can be restored of what `serve --backup-to` has shipped',
    async run(given, io) {
      const { history, runsOf } = await open(given)
      const rows = runsOf(history).map(({ snapshot, parts, last_seq }) => ({
        ...{ snapshot: snapshot.seq, at_ms: snapshot.at_ms, to_position: last_seq },
        to_ms: parts.at(-1)?.at_ms ?? snapshot.at_ms,
        ...{ parts: parts.length, bytes: parts.reduce((sum, { bytes }) => sum + bytes, 0) },
      }))
      return printList(given, io, rows, {
        heads: ['SNAPSHOT', 'AT', 'TO POSITION', 'AT', 'PARTS', 'BYTES'],
        cellsOf: (row) => [
          ...[String(row.snapshot), timeText(row.at_ms), String(row.to_position)],
          ...[timeText(row.to_ms), String(row.parts), String(row.bytes)],
        ],
      })
    },
  }),
  verbOf('backups verify FOLDER', {
    flags: [json_flag],
    says: 'read and check every snapshot and part',
    notes: [
      'Exit 5: parts are damaged, or the end cannot be reached. A gap that a snapshot follows is',
      'printed: no moment in it can be restored. Restore a drill from the folder as well.',
    ],
    run: verify,
  }),
  verbOf('backups prune FOLDER', {
    flags: [...keep_flags, json_flag],
    says: 'remove what is older, once all that stays was read and is whole',
    notes: ['A server may ship to the folder meanwhile. Nothing goes while a part is damaged.'],
    run: prune,
  }),
]

async function open(given: Given) {
  const { historyOf } = await import('../../backups/open-plan.ts')
  const { openTarget } = await import('../../backups/open-target.ts')
  const { runsOf } = await import('../../backups/history.ts')
  const target = openTarget(word(given, 0), systemChance)
  const history = await historyOf(target)
  const log = history.tenures[0]?.begin.log ?? ''
  return { source: { target, log }, history, runsOf }
}

async function verify(given: Given, io: Io): Promise<Exit> {
  const { source, history } = await open(given)
  const { verifyAll } = await import('../../backups/verify.ts')
  const { bytes, snapshots, parts, problems, gaps } = await verifyAll(source, history)
  const all = `${snapshots} snapshots and ${parts} parts, ${bytes} bytes`
  const end = problems.length === 0 ? `${all}: all are whole` : `of ${all}`
  const lines = [...problems, ...gaps, end]
  const json = { snapshots, parts, bytes, problems, gaps }
  await printDone(given, io, json, linesText(lines))
  return problems.length === 0 ? exits.done : exits.damaged
}

async function prune(given: Given, io: Io): Promise<Exit> {
  const [days, count] = [numberOf(given, 'keep-days'), numberOf(given, 'keep')]
  if (days === undefined && count === undefined) {
    throw usageError('say what stays: --keep-days N, --keep N, or both')
  }
  const { source, history } = await open(given)
  const { keptFrom, prune } = await import('../../backups/verify.ts')
  const since_ms = days === undefined ? Number.POSITIVE_INFINITY : io.clock.now_ms() - days * day_ms
  const kept = keptFrom(history, { since_ms, snapshots: count ?? 2 })
  const { removed, bytes } =
    kept === undefined ? { removed: 0, bytes: 0 } : await prune(source, history, kept)
  const first = kept ?? history.snapshots[0]
  const begins = first === undefined ? 'nothing' : `position ${first.seq}, ${timeText(first.at_ms)}`
  const line = `removed ${removed} objects, ${bytes} bytes; what stays begins with ${begins}`
  const json = { removed, bytes, position: first?.seq ?? null, at_ms: first?.at_ms ?? null }
  return printDone(given, io, json, linesText([line]))
}

function numberOf(given: Given, name: string): number | undefined {
  const value = text(given, name)
  if (value === undefined) return undefined
  if (!/^[0-9]{1,6}$/.test(value)) throw usageError(`--${name} takes a whole number`)
  return Number(value)
}
