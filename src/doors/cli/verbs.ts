/**
 * THE table of verbs, in the order in which help lists them.
 */
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
  ...processVerbs,
  ...taskVerbs,
  ...sendVerbs,
  ...fileVerbs,
]
