/**
 * THE table of verbs, in the order in which help lists them.
 */

import type { Verb } from './verb.ts'
import { certsVerbs } from './verbs/certs.ts'
import { fileVerbs } from './verbs/data-file.ts'
import { processVerbs } from './verbs/process.ts'
import { sendVerbs } from './verbs/send.ts'
import { serveVerb } from './verbs/serve.ts'
import { taskVerbs } from './verbs/task.ts'
import { userVerbs } from './verbs/user.ts'
import { bindVerbs } from './verbs/user-bind.ts'

export const verbs: readonly Verb[] = [
  serveVerb,
  ...userVerbs,
  ...bindVerbs,
  ...processVerbs,
  ...taskVerbs,
  ...sendVerbs,
  ...certsVerbs,
  ...fileVerbs,
]
