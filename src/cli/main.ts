/**
 * Runs a command line and resolves with its exit code. Everything it needs is passed in, so that a
 * test is a plain call; nothing here reads or ends the process.
 */
import { version } from '../core/version.ts'
import { exits, type Failure, failureOf } from './exit-codes.ts'
import { type Env, type Io, print } from './io.ts'
import { type Parsed, parseWords } from './parse.ts'
import { withFile, withProgram } from './program.ts'
import { clean } from './text.ts'
import { isOn } from './verb.ts'
import { helpOfAll, helpOfVerb, verbs } from './verb-table.ts'

/**
 * Runs `argv` (without the program's name) and resolves with an exit code of wire 3. Rejects only
 * when writing to the streams fails.
 */
export async function main(argv: readonly string[], env: Env, given_io: Io): Promise<number> {
  const { program, stderr } = given_io
  // Messages on standard error may quote commands.
  let onFile = (text: string): string => text
  const io: Io = {
    ...given_io,
    stderr: {
      write: (text, done) => stderr.write(withProgram(onFile(text), program), done),
      isTTY: stderr.isTTY === true,
    },
  }
  let json = argv.includes('--json')
  try {
    const parsed = parseWords(argv, env, verbs)
    if (parsed.kind === 'run') {
      const { given } = parsed
      json = isOn(given, 'json')
      // What `serve` writes are lines of JSON, as is a refusal with --json.
      if (!json && given.verb.name !== 'serve') onFile = (text) => withFile(text, given)
      return await parsed.given.verb.run(parsed.given, io)
    }
    await print(io.stdout, withProgram(textOf(parsed), program))
    return exits.done
  } catch (error) {
    const { exit, code, description, ...found } = failureOf(error)
    const lines = json
      ? [JSON.stringify({ error: code, description, ...found })]
      : [`conveyor: ${clean(description)}`, ...foundLines(found)]
    if (isOfLmdb(error)) lines.unshift('')
    await print(io.stderr, lines.map((line) => `${line}\n`).join(''))
    return exit
  }
}

function foundLines({ mistakes, warnings = [] }: Pick<Failure, 'mistakes' | 'warnings'>): string[] {
  const warned = warnings.map(({ conv_id, text }) => {
    return `warning: ${conv_id === undefined ? '' : `process ${conv_id}: `}${text}`
  })
  return [...mistakes, ...warned].map((text) => `  ${clean(text)}`)
}

/** LMDB also prints a failed write on standard error, without a line end. */
function isOfLmdb(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  // The codes of the system and of faults are texts.
  return typeof (error as { code?: unknown }).code === 'number' || isOfLmdb(error.cause)
}

function textOf(parsed: Exclude<Parsed, { kind: 'run' }>): string {
  if (parsed.kind === 'version') return `${version}\n`
  return parsed.verb === undefined ? helpOfAll(verbs, parsed.group) : helpOfVerb(parsed.verb)
}
