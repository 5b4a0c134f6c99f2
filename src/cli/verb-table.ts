/**
 * The table of verbs, in the order of the help, and the help that is printed from it.
 */
import { columns } from './text.ts'
import { db_flag, type Flag, json_flag, type Verb } from './verb.ts'
import { backupsVerbs } from './verbs/backups.ts'
import { certsVerbs } from './verbs/certs.ts'
import { clusterVerbs } from './verbs/cluster.ts'
import { consoleVerbs } from './verbs/console.ts'
import { fileVerbs } from './verbs/data-file.ts'
import { doctorVerb } from './verbs/doctor.ts'
import { initVerb } from './verbs/init.ts'
import { processVerbs } from './verbs/process.ts'
import { aliasVerbs } from './verbs/process-alias.ts'
import { restoreVerb } from './verbs/restore.ts'
import { scheduleVerbs } from './verbs/schedule.ts'
import { sendVerb } from './verbs/send.ts'
import { serveVerb } from './verbs/serve.ts'
import { signVerb } from './verbs/sign.ts'
import { smokeVerb } from './verbs/smoke.ts'
import { taskVerbs } from './verbs/task.ts'
import { topVerb } from './verbs/top.ts'
import { userVerbs } from './verbs/user.ts'
import { bindVerbs } from './verbs/user-bind.ts'

export const verbs: readonly Verb[] = [
  initVerb,
  serveVerb,
  topVerb,
  ...userVerbs,
  ...bindVerbs,
  ...consoleVerbs,
  ...processVerbs,
  ...aliasVerbs,
  ...taskVerbs,
  ...scheduleVerbs,
  sendVerb,
  signVerb,
  ...certsVerbs,
  ...clusterVerbs,
  ...fileVerbs,
  restoreVerb,
  ...backupsVerbs,
  doctorVerb,
  smokeVerb,
]

export function helpOfAll(verbs: readonly Verb[], group?: string): string {
  const rows = verbs.filter((verb) => group === undefined || verb.name.startsWith(`${group} `))
  return [
    `npx conveyor ${group ?? 'VERB'} …\n\n`,
    columns(rows.map((verb) => ['', `${verb.name} ${wordsOf(verb)}`.trimEnd(), verb.says])),
    '\n',
    columns([
      ['', '--db FILE', db_flag.says],
      ['', '--json', json_flag.says],
    ]),
    '\n`npx conveyor VERB --help` shows all of a verb. Flags can be set in the environment:\n',
    '--db is CONVEYOR_DB, --ops-max is CONVEYOR_OPS_MAX. Exit: 0 done, 1 refused, 2 usage,\n',
    '3 out of reach, 4 not authenticated.\n',
  ].join('')
}

export function helpOfVerb(verb: Verb): string {
  const notes = (verb.notes ?? []).map((line) => `${line}\n`)
  return [
    `npx conveyor ${verb.name} ${wordsOf(verb)}`.trimEnd(),
    verb.flags.length > 0 ? ' [flags]\n\n' : '\n\n',
    `${verb.says}\n`,
    ...(notes.length > 0 ? ['\n', ...notes] : []),
    ...(verb.flags.length > 0 ? ['\n', columns(verb.flags.map(flagRow))] : []),
  ].join('')
}

function wordsOf(verb: Verb): string {
  return verb.words
    .map(({ name, optional, many }) => (optional ? `[${name}]` : many ? `${name}…` : name))
    .join(' ')
}

function flagRow(flag: Flag): string[] {
  const value = flag.value === undefined ? '' : ` ${flag.value}`
  return ['', `--${flag.name}${value}`, flag.says]
}
