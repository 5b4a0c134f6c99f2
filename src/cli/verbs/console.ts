/** `console link`: a one-time link to the operator's page of the process that holds the file. */
import { console_rights } from '../../engine/api/user-api.ts'
import { ask, fileVerb } from '../file-verb.ts'
import { printDone } from '../output.ts'
import { linesText } from '../text.ts'
import { flag, oneOf, text, type Verb } from '../verb.ts'

export const consoleVerbs: readonly Verb[] = [
  fileVerb('console link', {
    flags: [
      flag('right RIGHT', 'what its session may: look, operate or administer (default)', {
        no_env: true,
      }),
    ],
    says: 'print a link that signs in to the operator’s page, once, within ten minutes',
    async run(given, io) {
      const right = oneOf('--right', text(given, 'right'), console_rights) ?? 'administer'
      const { links } = await ask(given, io, 'console.link', { right })
      return printDone(given, io, { links, right }, linesText(links))
    },
  }),
]
