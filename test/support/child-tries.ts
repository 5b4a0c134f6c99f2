/**
 * Tries in child processes, each of which prints lines of JSON and makes many tries. A try may end its
 * process, as LMDB does over some damaged files; that is the failure of this try, and the next child
 * goes on after it. A child that prints nothing for a minute is killed.
 */
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

const silent_ms_max = 60_000

export interface ChildTries<Line> {
  /** The words of a child that begins after this try; undefined once there are no more tries. */
  words(after: Line | undefined): readonly string[] | undefined
  /** Whether the line is the first of a try. */
  begins(line: Line): boolean
  /** `enough` ends the tries. */
  take(line: Line): unknown
  /** The try with this first line ended its process; `how` says how. */
  fail(begun: Line, how: string): void
}

export async function tryInChildren<Line>({
  words,
  begins,
  take,
  fail,
}: ChildTries<Line>): Promise<void> {
  let after: Line | undefined
  for (let next = words(after); next !== undefined; next = words(after)) {
    let begun: Line | undefined
    const how = await runChild<Line>(next, (line) => {
      if (begins(line)) begun = line
      return take(line)
    })
    if (how === undefined) return
    if (begun === undefined) throw new Error(`a child ended before its first try: ${how}`)
    after = begun
    fail(begun, how)
  }
}

/** Resolves with how the child ended; undefined for exit code 0 and after `enough`. */
export async function runChild<Line>(
  words: readonly string[],
  take: (line: Line) => unknown,
): Promise<string | undefined> {
  const child = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'pipe'] })
  let said = ''
  let why: string | undefined
  const silent = setTimeout(() => {
    why = `it printed nothing for ${silent_ms_max} ms`
    child.kill('SIGKILL')
  }, silent_ms_max)
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said = (said + text).slice(-4_000)
  })
  const closed = new Promise<number | string | null>((resolve) =>
    child.once('close', (code, signal) => resolve(signal ?? code)),
  )
  for await (const text of createInterface({ input: child.stdout })) {
    silent.refresh()
    if (why === undefined && take(JSON.parse(text) as Line) === 'enough') {
      why = ''
      child.kill('SIGKILL')
    }
  }
  const end = await closed
  clearTimeout(silent)
  return end === 0 || why === '' ? undefined : (why ?? `${end} ${said}`)
}
