/**
 * Asks whoever types a command for the number of what it changes, before anything is changed: a
 * typo at night, or a line from the history of a shell, goes no further.
 */
import { type Io, linesOf, print } from './io.ts'

/** Whether the next line of standard input is this number. */
export async function isConfirmed(io: Io, asks: string, number: number): Promise<boolean> {
  await print(io.stderr, asks)
  for await (const line of linesOf(io.stdin, 100)) {
    if ('text' in line && line.text.trim() === String(number)) return true
    break
  }
  await print(io.stderr, 'that is not the number, nothing was changed\n')
  return false
}
