/**
 * The command line from words to an exit code. Nothing here ends the process or reads it: what it
 * needs is handed in, so a test is a plain call.
 */
import { version } from '../core/version.ts'
import { exits, failureOf } from './exit-codes.ts'
import { helpOfAll, helpOfVerb } from './help.ts'
import { type Env, type Io, print } from './io.ts'
import { type Parsed, parseWords } from './parse.ts'
import { clean } from './table.ts'
import { isOn } from './verb.ts'
import { verbs } from './verb-table.ts'

/**
 * Runs `argv` (without the program's name) and resolves with the exit code of wire 3. Rejects only
 * when the streams themselves fail.
 */
export async function main(argv: readonly string[], env: Env, io: Io): Promise<number> {
  let json = argv.includes('--json')
  try {
    const parsed = parseWords(argv, env, verbs)
    if (parsed.kind === 'run') {
      json = isOn(parsed.given, 'json')
      return await parsed.given.verb.run(parsed.given, io)
    }
    await print(io.stdout, textOf(parsed))
    return exits.done
  } catch (error) {
    const { exit, code, description, mistakes } = failureOf(error)
    const lines = json
      ? [JSON.stringify({ error: code, description, mistakes })]
      : [`conveyor: ${clean(description)}`, ...mistakes.map((mistake) => `  ${clean(mistake)}`)]
    await print(io.stderr, lines.map((line) => `${line}\n`).join(''))
    return exit
  }
}

function textOf(parsed: Exclude<Parsed, { kind: 'run' }>): string {
  if (parsed.kind === 'version') return `${version}\n`
  return parsed.verb === undefined ? helpOfAll(verbs, parsed.group) : helpOfVerb(parsed.verb)
}
