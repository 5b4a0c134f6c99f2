/** `process export`: one definition to standard output, or many processes into a zip file. */
import { writeFile } from 'node:fs/promises'
import { defined } from '../../core/defined.ts'
import { type Exit, exits, usageError } from '../exit-codes.ts'
import { ask, fileVerb } from '../file-verb.ts'
import { type Io, print } from '../io.ts'
import { printDone } from '../output.ts'
import { flag, type Given, text } from '../verb.ts'

export const exportVerb = fileVerb('process export [ID]', {
  flags: [
    flag('all FILE.zip', 'write all processes, aliases and variables into a new zip file'),
    flag('stage S', 'with --all: those of this stage alone, by id or name'),
    flag('project P', 'with --all: those of the stages of this project alone, by id or name'),
  ],
  says: 'print the definition as it was given, or write many into a zip file',
  notes: [
    '`process import` takes the zip file back, here or elsewhere. Definitions are in it as they',
    'were given, the values of secret variables are not, nor are processes without nodes.',
  ],
  run: exportProcesses,
})

async function exportProcesses(given: Given, io: Io): Promise<Exit> {
  const [id] = given.words
  const [file, stage, project] = ['all', 'stage', 'project'].map((name) => text(given, name))
  if (file === undefined) {
    if (id === undefined) throw usageError('process export needs an ID, or --all FILE.zip')
    if ((stage ?? project) !== undefined) throw usageError('--stage and --project go with --all')
    const found = await ask(given, io, 'process.export', { id })
    await print(io.stdout, `${found.definition_text}\n`)
    return exits.done
  }
  if (id !== undefined) throw usageError('an ID or --all, not both')
  const found = await ask(given, io, 'process.exportAll', defined({ stage, project }))
  const { zipOf } = await import('../../files/zip-writer.ts')
  const bytes = await zipOf(found.files, io.clock.now_ms())
  try {
    // A file that is there may be the only copy of something.
    await writeFile(file, bytes, { flag: 'wx' })
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    throw usageError(code === 'EEXIST' ? `${file} is there already` : message)
  }
  const { processes } = found
  return printDone(given, io, { file, processes }, `${file}: ${processes} processes\n`)
}
