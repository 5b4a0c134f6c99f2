/** `task import` and `task export`: tasks from and to CSV; an import takes NDJSON as well. */
import { csvLine, type Divider, dividers } from '../../task-operations/csv.ts'
import type { CsvOptions } from '../../task-operations/csv-import.ts'
import {
  type ColumnType,
  cellsOf,
  column_types,
  default_columns,
} from '../../task-operations/csv-tasks.ts'
import { withAdmin } from '../admin-connection.ts'
import { type Exit, exits, usageError } from '../exit-codes.ts'
import { fileVerb } from '../file-verb.ts'
import { type Io, print } from '../io.ts'
import { flag, type Given, isOn, list, oneOf, text, type Verb, word } from '../verb.ts'
import { filter_notes, filterFlags } from './task-filter.ts'
import { createFromFile } from './task-import.ts'
import { eachPage } from './task-list.ts'

const divider_flag = flag('divider C', 'between cells: , ; | or tab (default ,)')

export const csvVerbs: readonly Verb[] = [
  fileVerb('task import CONV FILE', {
    flags: [
      flag('ref-column NAME', 'the column that is the ref'),
      flag('convert NAME:TYPE', 'number, boolean, object or array; a cell is a text else', {
        many: true,
      }),
      divider_flag,
      flag('encoding E', 'of a CSV file, such as windows-1251 (default utf-8)'),
      flag('no-names', 'the first row is a task; the columns are column_1, column_2, …'),
    ],
    says: 'create a task for each row of a CSV file, or each line of an .ndjson file',
    notes: [
      'A file that ends in .ndjson holds what `task create --file` takes; any other, and -, which',
      'is standard input, is CSV. Bad rows are named by their line and passed over. After a',
      'break the same import may run again: a row whose task lives makes no second one. Without',
      '--ref-column each run makes all of them.',
    ],
    run: importTasks,
  }),
  fileVerb('task export [CONV]', {
    flags: [
      ...filterFlags,
      flag('columns A,B', 'members of the task or paths of its data: ref,status,customer.name'),
      divider_flag,
    ],
    says: 'print the tasks of a process, or of all, as CSV',
    notes: [
      `Without --columns: ${default_columns.join(',')}.`,
      'Numbers keep their text. A text that a spreadsheet would run as a formula begins with an',
      'apostrophe, which `task import` takes away again. Without --status live tasks.',
      ...filter_notes,
    ],
    run: exportTasks,
  }),
]

async function importTasks(given: Given, io: Io): Promise<Exit> {
  const [conv_id, file] = [word(given, 0), word(given, 1)]
  const csv = csvOptions(given)
  const from = { conv_id, file, json: isOn(given, 'json') }
  const options = file.endsWith('.ndjson') ? from : { ...from, csv }
  return withAdmin(given, io, (admin) => createFromFile(admin, io, options))
}

function csvOptions(given: Given): CsvOptions {
  const encoding = text(given, 'encoding') ?? 'utf-8'
  try {
    new TextDecoder(encoding)
  } catch {
    throw usageError(`--encoding: ${encoding} is no encoding that is known here`)
  }
  return {
    ...{ encoding, divider: dividerOf(given), has_names: !isOn(given, 'no-names') },
    ref: text(given, 'ref-column'),
    types: new Map(list(given, 'convert').map(conversion)),
  }
}

function dividerOf(given: Given): Divider {
  const named = text(given, 'divider')
  if (named === undefined) return ','
  return oneOf('--divider', named === 'tab' ? '\t' : named, dividers) ?? ','
}

function conversion(given: string): [name: string, type: ColumnType] {
  const at = given.lastIndexOf(':')
  if (at <= 0) throw usageError('--convert is NAME:TYPE, such as amount:number')
  const type = oneOf('the type of --convert', given.slice(at + 1), column_types) ?? 'number'
  return [given.slice(0, at), type]
}

async function exportTasks(given: Given, io: Io): Promise<Exit> {
  const columns = text(given, 'columns')?.split(',') ?? default_columns
  if (columns.includes('')) throw usageError('--columns is a list such as ref,status,amount')
  const divider = dividerOf(given)
  await print(io.stdout, csvLine(columns, divider))
  await eachPage(given, io, Infinity, async ({ tasks }) => {
    await print(io.stdout, tasks.map((task) => csvLine(cellsOf(task, columns), divider)).join(''))
  })
  return exits.done
}
