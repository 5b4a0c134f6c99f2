/**
 * What is hostile to one part of the engine: rows with their stated answers, and the bed on which
 * they are tried.
 */

export interface HostileRow {
  readonly says: string
  /** The stated answer. */
  readonly code: string
}

export interface HostileBed {
  /** What came of the row at this place. */
  answerTo(at: number): Promise<string>
  /** What comes of a good request, which must be `ok`. */
  honest(): Promise<string>
  /** What came out as a bug since the last look. */
  readonly bugs: unknown[]
  close(): Promise<void>
}

export interface HostileClass {
  readonly name: string
  readonly rows: readonly HostileRow[]
  open(): Promise<HostileBed>
}

/** Of a control: the name of what was made worse, which an edited source asks for as it runs. */
export const worse_variable = 'MADE_WORSE'

/** The text of the condition under which an edited source is the worse one. */
export function whenWorse(name: string): string {
  return `(globalThis.process.env.${worse_variable} === "${name}")`
}
