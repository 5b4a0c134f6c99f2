/** Help, printed from the table of verbs; what it says of a flag is what the parser takes. */
import { columns } from './table.ts'
import { db_flag, type Flag, json_flag, type Verb } from './verb.ts'

/** All verbs, or those that open with the word `group`. */
export function helpOfAll(verbs: readonly Verb[], group?: string): string {
  const rows = verbs.filter((verb) => group === undefined || verb.name.startsWith(`${group} `))
  return [
    `conveyor ${group ?? 'VERB'} …\n\n`,
    columns(rows.map((verb) => ['', `${verb.name} ${wordsOf(verb)}`.trimEnd(), verb.says])),
    '\n',
    columns([
      ['', '--db FILE', db_flag.says],
      ['', '--json', json_flag.says],
    ]),
    '\n`conveyor VERB --help` tells all of a verb. A flag may also stand in the environment:\n',
    '--db is CONVEYOR_DB, --ops-max is CONVEYOR_OPS_MAX. Exit: 0 done, 1 refused, 2 usage,\n',
    '3 out of reach, 4 not authenticated.\n',
  ].join('')
}

export function helpOfVerb(verb: Verb): string {
  const notes = (verb.notes ?? []).map((line) => `${line}\n`)
  return [
    `conveyor ${verb.name} ${wordsOf(verb)}`.trimEnd(),
    verb.flags.length > 0 ? ' [flags]\n\n' : '\n\n',
    `${verb.says}\n`,
    ...(notes.length > 0 ? ['\n', ...notes] : []),
    ...(verb.flags.length > 0 ? ['\n', columns(verb.flags.map(flagRow))] : []),
  ].join('')
}

function wordsOf(verb: Verb): string {
  return verb.words.map(({ name, optional }) => (optional ? `[${name}]` : name)).join(' ')
}

function flagRow(flag: Flag): string[] {
  const value = flag.value === undefined ? '' : ` ${flag.value}`
  return ['', `--${flag.name}${value}`, flag.says]
}
