/**
 * Reads deploy/conveyor.service: its settings, the words of its command line, and its environment
 * with folders in a test's own.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { top } from './package-folder.ts'

export const unit_text = readFileSync(join(top, 'deploy/conveyor.service'), 'utf8')

/** The values of a setting, in order. */
export function unitSettings(name: string): string[] {
  const rows = unit_text.matchAll(new RegExp(`^${name}=(.*)$`, 'gm'))
  return [...rows].map(([, value]) => value as string)
}

/** The program, then its arguments. */
export const unit_words = (unitSettings('ExecStart')[0] as string).split(' ')

export const unit_env: Readonly<Record<string, string>> = Object.fromEntries(
  unitSettings('Environment').map((pair) => pair.split('=') as [string, string]),
)

/** `env` with its folders in `place`, and with ports that the system picks. */
export function movedEnv(
  env: Readonly<Record<string, string>>,
  place: string,
): Record<string, string> {
  const moved = Object.entries(env).map(([name, value]) => [
    name,
    value.startsWith('/') ? join(place, value) : value.replace(/:\d+$/, ':0'),
  ])
  return {
    PATH: process.env.PATH as string,
    CONVEYOR_JSON: '1',
    CONVEYOR_LOG_LEVEL: 'error',
    ...Object.fromEntries(moved),
  }
}
