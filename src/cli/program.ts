/**
 * The words that run this program where its messages are read. Texts of the source quote commands
 * as `npx conveyor VERB`, which works beside an installed package, as for an embedder; the command
 * line prints the words by which it was started itself.
 */
import type { Given } from './verb.ts'

/** How the sources quote the program. */
const quoted = 'npx conveyor'

/**
 * The words, from the path of the script and the variables that npm sets: `npm run` from a
 * checkout, `npx conveyor` or `conveyor` where the package is installed, `node FILE` otherwise.
 * `npx conveyor-engine` where that started it, since npx finds it where nothing is installed.
 */
export function programOf(
  script: string,
  {
    npm_lifecycle_event: script_name,
    npm_command: command,
  }: Readonly<Record<string, string | undefined>>,
): string {
  if (script.endsWith('.ts')) return 'npm run -s conveyor --'
  if (/[/\\]conveyor-engine(\.js)?$/.test(script)) return `${quoted}-engine`
  if (command === 'exec' && script_name === 'npx') return quoted
  if (/[/\\]node_modules[/\\]/.test(script)) return quoted
  if (/[/\\]conveyor$/.test(script)) return 'conveyor'
  return `node ${shellWord(script)}`
}

/** A word of a command line, quoted for a shell where needed. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}

/** The text with the words of `program` in each command that it quotes. */
export function withProgram(text: string, program: string): string {
  return text.replaceAll(quoted, program)
}

/** The text with the file that `--db` has named, if it has, in each command that it quotes. */
export function withFile(text: string, given: Given): string {
  const { db } = given.flags
  if (typeof db !== 'string' || db === given.env.CONVEYOR_DB) return text
  return text.replaceAll(/`npx conveyor (?!certs|serve)[^`]*`/g, (command) =>
    / --(db|help)\b/.test(command) ? command : `${command.slice(0, -1)} --db ${shellWord(db)}\``,
  )
}
