/** `console link`: a one-time link to the operator's page of the process that holds the file. */
import { console_rights } from '../../engine/api/user-api.ts'
import { withAdmin } from '../admin-connection.ts'
import { exits } from '../exit-codes.ts'
import { print } from '../io.ts'
import { db_flag, isOn, json_flag, oneOf, text, type Verb } from '../verb.ts'

export const consoleVerbs: readonly Verb[] = [
  {
    name: 'console link',
    words: [],
    flags: [
      {
        name: 'right',
        value: 'RIGHT',
        no_env: true,
        says: 'what its session may: look, operate or administer (default)',
      },
      db_flag,
      json_flag,
    ],
    says: 'print a link that signs in to the operator’s page, once, within ten minutes',
    async run(given, io) {
      const right = oneOf('--right', text(given, 'right'), console_rights) ?? 'administer'
      const { links } = await withAdmin(given, io, (admin) => admin.call('console.link', { right }))
      const json = `${JSON.stringify({ links, right })}\n`
      await print(io.stdout, isOn(given, 'json') ? json : links.map((link) => `${link}\n`).join(''))
      return exits.done
    },
  },
]
