/**
 * Children that print lines of JSON about what they try. One that says nothing for long is ended; of
 * one that ends early the caller learns how.
 */
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

const silent_ms_max = 60_000

/**
 * Runs `node` with these words. Resolves with how the child ended, unless it ended with 0 or was
 * ended because `take` answered `enough`.
 */
export async function readChild<Line>(
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
