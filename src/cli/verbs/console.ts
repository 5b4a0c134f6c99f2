/** `console link`: a one-time link to the operator's page of the process that holds the file. */
import { console_rights } from '../../engine/api/user-api.ts'
import { withAdmin } from '../admin-connection.ts'
import { file_flags, flag } from '../flag.ts'
import { printDone } from '../output.ts'
import { linesText } from '../text.ts'
import { oneOf, text, type Verb } from '../verb.ts'

export const consoleVerbs: readonly Verb[] = [
  {
    name: 'console link',
    words: [],
    flags: [
      flag('right RIGHT', 'what its session may: look, operate or administer (default)', {
        no_env: true,
      }),
      ...file_flags,
    ],
    says: 'print a link that signs in to the operator’s page, once, within ten minutes',
    async run(given, io) {
      const right = oneOf('--right', text(given, 'right'), console_rights) ?? 'administer'
      const { links } = await withAdmin(given, io, (admin) => admin.call('console.link', { right }))
      return printDone(given, io, { links, right }, linesText(links))
    },
  },
]
