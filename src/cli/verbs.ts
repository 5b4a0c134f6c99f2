/**
 * THE table of verbs, in the order in which help lists them.
 */
import { bindVerbs } from './bind.ts'
import { certsVerbs } from './certs.ts'
import { fileVerbs } from './file.ts'
import { processVerbs } from './process.ts'
import { sendVerbs } from './send.ts'
import { serveVerb } from './serve.ts'
import { taskVerbs } from './task.ts'
import { userVerbs } from './user.ts'
import type { Verb } from './verb.ts'

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
