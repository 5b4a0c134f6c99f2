/** Asks for the number of what a command changes, so that a typo or a line from a shell's history
 * changes nothing. */
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
