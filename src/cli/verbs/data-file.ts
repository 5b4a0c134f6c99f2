/** `backup` and `check`: verbs on the data file as a whole. */
import { resolve } from 'node:path'
import { exits } from '../exit-codes.ts'
import { ask, fileVerb } from '../file-verb.ts'
import { printDone } from '../output.ts'
import { linesText } from '../text.ts'
import { type Verb, word } from '../verb.ts'

export const fileVerbs: readonly Verb[] = [
  fileVerb('backup FILE', {
    says: 'write a checked copy of the data file while it is in use',
    notes: [
      'FILE must not exist yet. It has all that was acknowledged before, and gets its name once it',
      'is whole and checked. The key of the secrets is a file of its own: keep a copy elsewhere.',
      '`conveyor restore FILE` puts it back. Of damaged data the copy is FILE.damaged (exit 5). Of',
      'a node of a cluster it has what that node has, and opens alone, also where the node is',
      'stopped or its database is lost.',
    ],
    async run(given, io) {
      // The process that holds the file may run in another folder.
      const path = resolve(word(given, 0))
      const made = await ask(given, io, 'backup', { path })
      const key = made.key_id === undefined ? '' : `, whose secrets need the key ${made.key_id}`
      const { damage } = made
      const has = made.has === undefined ? '' : `, ${made.has}`
      const lines = [`${made.path}: ${made.bytes} bytes${key}${has}`]
      if (damage !== undefined) {
        lines.push(`pages or tasks of the data are damaged, ${damage.count} of them:`)
        lines.push(...damage.says, 'keep the backups made before')
      }
      const exit = await printDone(given, io, made, linesText(lines))
      return damage === undefined ? exit : exits.damaged
    },
  }),
  fileVerb('check', {
    says: 'walk every invariant of the data file',
    notes: ['Prints nothing where all is well; else a line for each breach, and exits 1.'],
    async run(given, io) {
      const report = await ask(given, io, 'check', {})
      const { breaches } = report
      await printDone(given, io, report, linesText(breaches))
      return breaches.length === 0 ? exits.done : exits.refused
    },
  }),
]
