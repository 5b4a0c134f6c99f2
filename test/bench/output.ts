/**
 * The output of a run: text at once, JSON lines at the end, with the seconds that each part of a run
 * of the targets took.
 */
import { writeFileSync } from 'node:fs'
import { type PartLine, partOf } from './targets.ts'

export const json_to_stdout = '-'

export interface Output {
  readonly lines: object[]
  print(text: string): void
  /** What was measured since the last call was this cell. */
  spend(cell: string): void
  parts(): PartLine[]
}

export function newOutput(print: Output['print']): Output {
  const seconds = new Map<string, number>()
  let last_ms = performance.now()
  return {
    lines: [],
    print,
    spend(cell) {
      const now_ms = performance.now()
      const part = partOf(cell)
      seconds.set(part, (seconds.get(part) ?? 0) + (now_ms - last_ms) / 1_000)
      last_ms = now_ms
    },
    parts: () => [...seconds].map(([part, seconds]) => ({ kind: 'part', part, seconds })),
  }
}

export async function printAll<T extends { readonly kind: string; readonly cell?: string }>(
  lines: AsyncIterable<T> | Iterable<T>,
  text: (line: T) => string,
  out: Output,
): Promise<T[]> {
  const printed: T[] = []
  for await (const line of lines) {
    printed.push(line)
    out.spend(line.cell ?? '')
    out.lines.push(line)
    out.print(text(line))
  }
  return printed
}

export function writeLines({ lines }: Output, to: string | undefined): void {
  const json = lines.map((line) => `${JSON.stringify(line)}\n`).join('')
  if (to === json_to_stdout) process.stdout.write(json)
  else if (to !== undefined) writeFileSync(to, json)
}
