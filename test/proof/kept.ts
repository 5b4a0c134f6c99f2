/**
 * What has failed in a try that cannot be made again from its seed alone. It is kept in the folder
 * for temporary files, where a run with that seed finds it.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { deserialize, serialize } from 'node:v8'

const pathOf = (name: string, seed: number): string => join(tmpdir(), `conveyor-${name}-${seed}`)

export function keep(name: string, seed: number, what: unknown): void {
  writeFileSync(pathOf(name, seed), serialize(what))
}

/** Where one alone is tried again. */
export function kept<T>(name: string, { n, seed }: { n: number; seed: number }): T | undefined {
  const path = pathOf(name, seed)
  return n === 1 && existsSync(path) ? (deserialize(readFileSync(path)) as T) : undefined
}
