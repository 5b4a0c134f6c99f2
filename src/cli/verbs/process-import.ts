/**
 * `process import`: reads files, folders and archives, and passes their texts to the engine, which
 * stores all of them or none. Prints a summary at the end, also for a refused import.
 */
import { existsSync } from 'node:fs'
import { defined } from '../../core/defined.ts'
import { isFault } from '../../core/faults.ts'
import type { ImportResult, VariableResult, WaitsFor } from '../../engine/api/process-api.ts'
import { type GivenFile, readExport } from '../../files/read-export.ts'
import { withAdmin } from '../admin-connection.ts'
import { type Exit, exits, usageError } from '../exit-codes.ts'
import { fileVerb } from '../file-verb.ts'
import { type Io, print, unreadable } from '../io.ts'
import { printJson, printLines } from '../output.ts'
import { clean } from '../text.ts'
import { dbOf, flag, type Given, isOn, list, text } from '../verb.ts'

export const importVerb = fileVerb('process import FILE…', {
  flags: [
    flag('id CONV_ID', 'its id, instead of the one it carries'),
    flag('move OLD=NEW', 'where tasks of a dropped node go; may be repeated', { many: true }),
    flag('map OLD=NEW', 'a new id for a process, or what @name means; may be repeated', {
      many: true,
    }),
    flag('stage S', 'take this stage alone, by id or name; or none: all, and of no stage'),
    flag('project P', 'take the stages of this project alone, by id or name'),
    flag('dry-run', 'check everything, and store nothing'),
  ],
  says: 'store definitions, or new versions of them',
  notes: [
    'FILE holds one definition, an array or a folder of them, or is a zip file or a directory with',
    'such files; - is standard input. Every mistake is named, and with any mistake nothing is',
    'stored. A process given a new id with --map is named by it everywhere. Prints what is still',
    'missing (handlers, variables, secrets) and the command that supplies each.',
  ],
  run: importFiles,
})

async function importFiles(given: Given, io: Io): Promise<Exit> {
  const id = text(given, 'id')
  const moves = pairsOf('move', list(given, 'move'))
  const map = pairsOf('map', list(given, 'map'))
  const json = isOn(given, 'json')
  try {
    const files = await readExport(given.words.map((word) => sourceOf(word, io)))
    const dry_run = isOn(given, 'dry-run')
    const [stage, project] = [text(given, 'stage'), text(given, 'project')]
    const args = { files, moves, map, dry_run, ...defined({ id, stage, project }) }
    const result = await withAdmin(given, io, (admin) => admin.call('process.import', args), {
      if_missing: dry_run ? 'in_memory' : 'create',
    })
    await printResult(result, io, json)
    if (dry_run && !json) {
      const db = dbOf(given)
      const is_new = existsSync(db) ? '' : `, and there is no file ${db} yet`
      await print(io.stdout, `a dry run: nothing is stored${is_new}\n`)
    }
    return exits.done
  } catch (error) {
    const is_refusal =
      isFault(error) && (error.code === 'bad_definition' || error.code === 'tasks_in_node')
    if (is_refusal) {
      const refused = error.mistakes?.length ?? 1
      const warned = new Set(error.warnings?.map(({ conv_id }) => conv_id)).size
      await printSummary({ ...nothing, warned, refused }, io, json)
    }
    throw error
  }
}

function sourceOf(word: string, io: Io): string | GivenFile {
  if (word === '-') return { name: 'standard input', chunks: io.stdin }
  if (existsSync(word)) return word
  throw unreadable(word, { code: 'ENOENT' })
}

async function printResult(result: ImportResult, io: Io, json: boolean): Promise<void> {
  const { processes } = result
  if (json) {
    await printLines(
      io,
      processes.map((put) => JSON.stringify(put)),
    )
  } else {
    for (const { conv_id, version, state, warnings, webhook_opened } of processes) {
      const webhook = webhook_opened ? ', webhook open: `process webhook` prints its address' : ''
      await print(io.stdout, `process ${clean(conv_id)}: ${state}, version ${version}${webhook}\n`)
      for (const warning of warnings) {
        await print(io.stderr, `  warning: ${clean(`process ${conv_id}: ${warning}`)}\n`)
      }
    }
  }
  const unchanged = processes.filter(({ state }) => state === 'unchanged').length
  const waits = processes.map(({ waits_for }) => waits_for)
  const all = (name: keyof WaitsFor): string[] => [...new Set(waits.flatMap((one) => one[name]))]
  await printSummary(
    {
      ...result,
      imported: processes.length - unchanged,
      unchanged,
      warned: processes.filter(({ warnings }) => warnings.length > 0).length,
      refused: 0,
      waits_for: {
        handlers: all('handlers'),
        variables: all('variables'),
        aliases: all('aliases'),
        processes: all('processes'),
      },
    },
    io,
    json,
  )
}

interface Summary extends Pick<ImportResult, 'aliases' | 'variables' | 'skipped'> {
  readonly imported: number
  readonly unchanged: number
  readonly warned: number
  /** Mistakes; with any, nothing is stored. */
  readonly refused: number
  readonly waits_for: WaitsFor
}

const nothing: Summary = {
  imported: 0,
  unchanged: 0,
  warned: 0,
  refused: 0,
  waits_for: { handlers: [], variables: [], aliases: [], processes: [] },
  aliases: [],
  variables: [],
  skipped: [],
}

async function printSummary(given: Summary, io: Io, json: boolean): Promise<void> {
  const { imported, unchanged, warned, refused, waits_for, aliases, variables, skipped } = given
  if (json) {
    const counts = { imported, unchanged, warned, refused }
    const summary = { ...counts, waits_for, aliases, variables, skipped }
    await printJson(io, JSON.stringify({ summary }))
    return
  }
  const lines = [
    ...aliases.map(
      ({ conv_id, state, ...alias }) => `alias ${nameIn(alias)}: ${state}, process ${conv_id}`,
    ),
    ...variables.map(
      ({ state, ...variable }) => `variable ${nameIn(variable)}: ${variable_states[state]}`,
    ),
    ...skipped.map((name) => `skipped ${name}: it holds nothing of an export`),
    `imported ${imported}, unchanged ${unchanged}, warned ${warned}, refused ${refused}`,
    ...waitLines(waits_for),
  ]
  await printLines(io, lines.map(clean))
}

function nameIn({ name, stage_id }: { readonly name: string; readonly stage_id?: string }): string {
  return stage_id === undefined ? `@${name}` : `@${name} of stage ${stage_id}`
}

const variable_states: Readonly<Record<VariableResult['state'], string>> = {
  created: 'created',
  updated: 'updated',
  unchanged: 'unchanged',
  not_stored: 'a secret, not stored',
}

function waitLines({ handlers, variables, aliases, processes }: WaitsFor): string[] {
  const rows: [what: string, names: readonly string[], then: string][] = [
    ['handlers', handlers, 'registered by `engine.handle` in a program that embeds the engine'],
    ['variables', variables.map((name) => `@${name}`), 'given by `serve --variables FILE`'],
    ['aliases', aliases.map((name) => `@${name}`), 'set by `process alias NAME ID`, or imported'],
    ['processes', processes, 'imported, or other ids for them given by `--map OLD=NEW`'],
  ]
  return rows
    .filter(([, names]) => names.length > 0)
    .map(([what, names, then]) => `waits for ${what} ${names.join(' ')}: to be ${then}`)
}

function pairsOf(flag: string, given: readonly string[]): Record<string, string> {
  const pairs: [string, string][] = []
  for (const pair of given) {
    const [, old_id, new_id] = /^([^=]+)=([^=]+)$/.exec(pair) ?? []
    if (old_id === undefined || new_id === undefined) throw usageError(`--${flag} takes OLD=NEW`)
    pairs.push([old_id, new_id])
  }
  return Object.fromEntries(pairs)
}
