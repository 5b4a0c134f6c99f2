/**
 * Parses arguments and environment into a verb with its flags. A flag on the command line overrides
 * its environment variable. A usage fault names the wrong argument, never its value, because a
 * secret typed in the wrong place must not be printed.
 */
import { parseArgs } from 'node:util'
import { usageError } from './exit-codes.ts'
import type { Env } from './io.ts'
import type { Flag, Given, Verb } from './verb.ts'

export type Parsed =
  | { readonly kind: 'run'; readonly given: Given }
  | { readonly kind: 'help'; readonly verb?: Verb; readonly group?: string }
  | { readonly kind: 'version' }

export function parseWords(argv: readonly string[], env: Env, verbs: readonly Verb[]): Parsed {
  const [first, second] = argv
  if (first === undefined) throw usageError('name a verb: see `npx conveyor --help`')
  if (first === '--version' || first === 'version') return { kind: 'version' }
  if (first === 'help') return helpOn(argv.slice(1), verbs)
  if (first === '--help' || first === '-h') return { kind: 'help' }
  const verb =
    verbs.find((row) => row.name === `${first} ${second}`) ??
    verbs.find((row) => row.name === first)
  if (verb === undefined) return unknownVerb(argv, verbs)
  const rest = argv.slice(verb.name.split(' ').length)
  return given(verb, rest, env)
}

function unknownVerb(argv: readonly string[], verbs: readonly Verb[]): Parsed {
  const [first = '', second] = argv
  if (first.startsWith('-')) throw usageError('the verb comes first: see `npx conveyor --help`')
  const group = verbs.filter((row) => row.name.startsWith(`${first} `))
  if (group.length === 0) throw usageError(`no such verb: ${first}; see \`npx conveyor --help\``)
  if (argv.includes('--help') || argv.includes('-h')) return { kind: 'help', group: first }
  const names = group.map((row) => row.name.slice(first.length + 1)).join(', ')
  throw usageError(
    second === undefined || second.startsWith('-')
      ? `say which ${first} verb: ${names}`
      : `no such verb: ${first} ${second}; there are ${names}`,
  )
}

function helpOn(words: readonly string[], verbs: readonly Verb[]): Parsed {
  if (words.length === 0) return { kind: 'help' }
  const name = words.join(' ')
  const verb = verbs.find((row) => row.name === name)
  if (verb !== undefined) return { kind: 'help', verb }
  if (verbs.some((row) => row.name.startsWith(`${name} `))) return { kind: 'help', group: name }
  throw usageError(`no such verb: ${name}; see \`npx conveyor --help\``)
}

function given(verb: Verb, rest: readonly string[], env: Env): Parsed {
  const { values, positionals } = parseFlags(verb, rest)
  if (values.help === true) return { kind: 'help', verb }
  const needed = verb.words.filter((row) => row.optional !== true).length
  if (positionals.length < needed) {
    throw usageError(`${verb.words[positionals.length]?.name} is missing: ${helpHint(verb)}`)
  }
  if (positionals.length > verb.words.length && verb.words.at(-1)?.many !== true) {
    throw usageError(
      `${verb.name} takes ${wordCount(verb)}, not ${positionals.length}: ${helpHint(verb)}`,
    )
  }
  const flags: Record<string, string | boolean | readonly string[]> = {}
  for (const flag of verb.flags) {
    const value = values[flag.name] ?? fromEnv(flag, env)
    if (value === undefined) continue
    if (value === '') throw usageError(`--${flag.name} needs a value: ${helpHint(verb)}`)
    flags[flag.name] = value
  }
  return { kind: 'run', given: { verb, words: positionals, flags, env } }
}

type Values = Record<string, string | boolean | string[] | undefined>

function parseFlags(
  verb: Verb,
  rest: readonly string[],
): { values: Values; positionals: string[] } {
  const options: Record<
    string,
    { type: 'string' | 'boolean'; multiple?: boolean; short?: string }
  > = { help: { type: 'boolean', short: 'h' } }
  for (const { name, value, many } of verb.flags) {
    options[name] = { type: value === undefined ? 'boolean' : 'string', multiple: many === true }
  }
  try {
    const { values, positionals } = parseArgs({
      args: [...rest],
      options,
      strict: true,
      allowPositionals: true,
    })
    return { values: values as Values, positionals }
  } catch (error) {
    throw usageError(`${flagMistake(error)}: ${helpHint(verb)}`)
  }
}

/** The first line of the parser's message, which names the flag. */
function flagMistake(error: unknown): string {
  const message = (error as Error).message
  if (/--(secret|password)\b/.test(message) && !/--secret-file/.test(message)) {
    return 'a secret is never an argument; use CONVEYOR_SECRET or --secret-file'
  }
  const [, name] = /^Unknown option '([^']*)'/.exec(message) ?? []
  if (name !== undefined) return `no such flag ${name}`
  return (message.split('\n')[0] as string).replace(/\.$/, '')
}

function fromEnv(flag: Flag, env: Env): string | boolean | undefined {
  if (flag.many === true || flag.no_env === true) return undefined
  const name = envName(flag)
  const value = env[name]
  if (value === undefined || value === '') return undefined
  if (flag.value !== undefined) return value
  if (value === '1' || value === 'true') return true
  if (value === '0' || value === 'false') return undefined
  throw usageError(`${name} is a switch: set it to 1 or 0`)
}

const envName = (flag: Flag): string => `CONVEYOR_${flag.name.toUpperCase().replaceAll('-', '_')}`

const helpHint = (verb: Verb): string => `see \`npx conveyor ${verb.name} --help\``

function wordCount(verb: Verb): string {
  const most = verb.words.length
  if (most === 0) return 'no words'
  return most === 1 ? 'one word' : `at most ${most} words`
}
