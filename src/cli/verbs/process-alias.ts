/**
 * The verbs of aliases: `process alias` and `process aliases`.
 */
import { defined } from '../../core/defined.ts'
import { withAdmin } from '../admin-connection.ts'
import { usageError } from '../exit-codes.ts'
import { fileVerb, listVerb } from '../file-verb.ts'
import { jsonOf, printDone } from '../output.ts'
import { flag, isOn, text, type Verb, word } from '../verb.ts'

export const aliasVerbs: readonly Verb[] = [
  fileVerb('process alias NAME [ID]', {
    flags: [
      flag('off', 'remove the alias'),
      flag('stage ID', 'for the definitions of this stage alone'),
    ],
    says: 'make @NAME in definitions mean a process',
    notes: ['A change takes effect at once, for tasks under way too. The @ may be left out.'],
    async run(given, io) {
      const [name, id] = [word(given, 0).replace(/^@/, ''), given.words[1]]
      const is_off = isOn(given, 'off')
      if (is_off === (id !== undefined)) throw usageError('an ID or --off, one of them')
      const of = { name, ...defined({ stage_id: text(given, 'stage') }) }
      await withAdmin(given, io, async (admin) => {
        if (id === undefined) await admin.call('process.removeAlias', of)
        else await admin.call('process.setAlias', { ...of, id })
      })
      const conv_id = id === undefined ? 'null' : JSON.stringify(id)
      return printDone(given, io, jsonOf({ name: JSON.stringify(name), conv_id }))
    },
  }),
  listVerb('process aliases', 'process.aliases', {
    says: 'list the aliases',
    heads: ['ALIAS', 'PROCESS', 'STAGE'],
    cellsOf: ({ name, conv_id, stage_id = '-' }) => [`@${name}`, conv_id, stage_id],
  }),
]
