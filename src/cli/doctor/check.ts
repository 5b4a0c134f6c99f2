/**
 * What a check of `doctor` is: its name, what it looks at, and how it judges the facts. Judging is
 * pure: the facts are collected before.
 */
import type { Facts } from './facts.ts'

export type Level = 'ok' | 'warn' | 'bad'

export interface Verdict {
  readonly level: Level
  /** One sentence. */
  readonly says: string
  /** What to do, where something is to be done; cli/program.ts says how commands are quoted. */
  readonly help?: string
}

export interface Check {
  readonly name: string
  readonly looks_at: string
  /** No verdict where there is nothing to look at. */
  judge(facts: Facts): Verdict | readonly Verdict[] | undefined
}

export function ok(says: string): Verdict {
  return { level: 'ok', says }
}

export function warn(says: string, help: string): Verdict {
  return { level: 'warn', says, help }
}

export function bad(says: string, help: string): Verdict {
  return { level: 'bad', says, help }
}

/** A time span for people: `40 s`, `3 h`, `12 d`. */
export function spanText(ms: number): string {
  const s = Math.round(Math.abs(ms) / 1_000)
  if (s < 120) return `${s} s`
  if (s < 7_200) return `${Math.round(s / 60)} min`
  return s < 172_800 ? `${Math.round(s / 3_600)} h` : `${Math.round(s / 86_400)} d`
}

/** Bytes for people: `640 MiB`. */
export function bytesText(bytes: number): string {
  const mib = bytes / 1_048_576
  if (mib >= 10_240) return `${Math.round(mib / 1_024)} GiB`
  return mib >= 1 ? `${Math.round(mib)} MiB` : `${bytes} bytes`
}
