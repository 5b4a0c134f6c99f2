/**
 * What is hostile to one part of the engine: a table of rows with their stated answers, and the
 * runner that sends them, over HTTP, gRPC, HTTP/2 or into the process.
 */

/** What it is, the stated answer, and what is sent. */
export type HostileRow<Sent> = readonly [says: string, code: string, sent: Sent]

export interface HostileRunner<Sent> {
  /** What came of a row; its place in the table chooses between forms that must not differ. */
  answerTo(sent: Sent, at: number, code: string): Promise<string>
  /** What comes of a good request, which must be `ok`. */
  honest(): Promise<string>
  /** What came out as a bug since the last look. */
  readonly bugs: unknown[]
  close(): Promise<void>
}

export interface HostileClass<Sent> {
  readonly name: string
  readonly rows: readonly HostileRow<Sent>[]
  open(): Promise<HostileRunner<Sent>>
}

/** Of a control: the name of what was made worse, which an edited source asks for as it runs. */
export const worse_variable = 'MADE_WORSE'

/** The text of the condition under which an edited source is the worse one. */
export function whenWorse(name: string): string {
  return `(globalThis.process.env.${worse_variable} === "${name}")`
}
