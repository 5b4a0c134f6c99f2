/**
 * The verbs of aliases: `process alias` and `process aliases`.
 */
import { withAdmin } from '../admin-connection.ts'
import { usageError } from '../exit-codes.ts'
import { file_flags, flag, words } from '../flag.ts'
import { jsonOf, printDone, printList } from '../output.ts'
import { isOn, type Verb, word } from '../verb.ts'

export const aliasVerbs: readonly Verb[] = [
  {
    name: 'process alias',
    words: words('NAME [ID]'),
    flags: [flag('off', 'remove the alias'), ...file_flags],
    says: 'make @NAME in definitions mean a process',
    notes: ['A change takes effect at once, for tasks under way too. The @ may be left out.'],
    async run(given, io) {
      const [name, id] = [word(given, 0).replace(/^@/, ''), given.words[1]]
      const is_off = isOn(given, 'off')
      if (is_off === (id !== undefined)) throw usageError('an ID or --off, one of them')
      await withAdmin(given, io, async (admin) => {
        if (id === undefined) await admin.call('process.removeAlias', { name })
        else await admin.call('process.setAlias', { name, id })
      })
      const conv_id = id === undefined ? 'null' : JSON.stringify(id)
      return printDone(given, io, jsonOf({ name: JSON.stringify(name), conv_id }))
    },
  },
  {
    name: 'process aliases',
    words: [],
    flags: file_flags,
    says: 'list the aliases',
    async run(given, io) {
      const aliases = await withAdmin(given, io, (admin) => admin.call('process.aliases', {}))
      return printList(given, io, aliases, {
        heads: ['ALIAS', 'PROCESS'],
        cellsOf: ({ name, conv_id }) => [`@${name}`, conv_id],
      })
    },
  },
]
