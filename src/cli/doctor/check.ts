/** A check of `doctor`: its name, its subject, and a pure judgement of the facts (facts.ts). */
import type { Facts } from './facts.ts'

export type Level = 'ok' | 'warn' | 'bad'

export interface Verdict {
  readonly level: Level
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

/** The help of a verdict whose sentence names the remedy. */
export const follow_sentence = 'follow the sentence'

export function ok(says: string): Verdict {
  return { level: 'ok', says }
}

export function warn(says: string, help: string): Verdict {
  return { level: 'warn', says, help }
}

export function bad(says: string, help: string): Verdict {
  return { level: 'bad', says, help }
}
