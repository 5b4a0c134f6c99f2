/**
 * Hostile input at random to all that reads what others send: requests over HTTP in the process and
 * over sockets, gRPC, the operator's page, definitions, templates, regular expressions, JSON. By a
 * grammar whose answers are known, so that each must be exactly right, and with bytes changed.
 * Nothing crashes, stands still for a second or applies what nobody has signed; afterwards the
 * engine passes its check and serves.
 *
 * What is tried in the process goes through node's HTTP server on a stream that is no socket.
 */
import { availableParallelism } from 'node:os'
import { readChild } from '../support/child-lines.ts'
import { buildChild, type Edit } from '../support/store-child.ts'
import type { Failure, Given, Outcome, Proof } from './proof.ts'

/** For fewer seeds another process costs more than it helps. */
const seeds_a_child_min = 5_000

const throws: Edit = {
  file: 'codec/request-body.ts',
  from: "if (name === 'ops') {",
  to: "if (name === 'company_id') throw new TypeError('no company')\n    if (name === 'ops') {",
}
const believes: Edit = {
  file: 'server/http/authenticate.ts',
  from: 'if (!isSignedBy(secrets, kind, timestamp, body, signature))',
  to: 'if (!isSignedBy(secrets, kind, timestamp, body, signature) && kind === "path")',
}
const stands_still: Edit = {
  file: 'codec/form-body.ts',
  from: 'function readText(written: string): string {',
  to: `const used_ms = (): number => {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000
}
let is_done = false
function readText(written: string): string {
  const until_ms = used_ms() + 1_200
  while (!is_done && written.includes('%') && used_ms() < until_ms);
  is_done ||= written.includes('%')`,
}

export const proof: Proof = {
  name: 'fuzz',
  says: 'hostile input crashes nothing, stalls nothing, and is answered as the contract says',
  unit: 'inputs',
  quick: 200,
  long: 1_250_000,
  run: (given) => tried(given, []),
  controls: [
    control('a parser that throws on a name', throws),
    // Few inputs have one that is signed in headers and wrong.
    { ...control('a server that believes any signature in headers', believes), quick: 480 },
    control('a parser that stands still for a second', stands_still, / stood still for /),
  ],
}

/** What it finds counts where it is what was made wrong, not another trouble that comes of it. */
function control(says: string, edit: Edit, finds = /./): Proof['controls'][number] {
  return { says, quick: 160, long: 2_000, run: (given) => tried(given, [edit], finds) }
}

interface Line {
  readonly seed?: number
  readonly failure?: string
  readonly counts?: Readonly<Record<string, number>>
  readonly stall_ms?: number
}

async function tried(
  { n, seed, failures_max, emit }: Given,
  edits: readonly Edit[],
  finds = /./,
): Promise<Outcome> {
  const child = await buildChild('fuzz-child.ts', edits)
  const children = Math.max(1, Math.min(availableParallelism(), Math.floor(n / seeds_a_child_min)))
  const began_ms = performance.now()
  const failures: Failure[] = []
  const counts: Record<string, number> = {}
  let [stall_ms, told] = [0, 0]
  const take = (line: Line): void => {
    if (line.failure !== undefined && finds.test(line.failure)) {
      failures.push({ seed: line.seed ?? seed, says: line.failure })
    }
    for (const [kind, count] of Object.entries(line.counts ?? {})) {
      counts[kind] = (counts[kind] ?? 0) + count
    }
    stall_ms = Math.max(stall_ms, line.stall_ms ?? 0)
    const done = sumOf(counts)
    if (done - told >= n / 10 && done < n) {
      told = done
      emit(`${done} of ${n}, ${failures.length} failures`)
    }
  }
  try {
    const share = Math.ceil(n / children)
    const shares = Array.from({ length: children }, (_, at) => at * share).filter((at) => at < n)
    await Promise.all(
      shares.map((at) => {
        let last = seed + at
        const args = [child.script, last, Math.min(share, n - at)].map(String)
        return readChild<Line>(args, (line) => {
          last = line.seed ?? last
          take(line)
          return failures.length >= failures_max ? 'enough' : undefined
        }).then((how) => {
          if (how === undefined) return
          take({ seed: last, failure: `behind seed ${last} the process ended: ${how}` })
        })
      }),
    )
    const seconds = (performance.now() - began_ms) / 1_000
    // Whoever fails often is ended before he has counted.
    const tried = Math.max(sumOf(counts), failures.length)
    const inputs = Object.entries(counts).map(([kind, count]) => `${kind} ${count}`)
    const figures = {
      inputs: inputs.join(', '),
      longest_turn_ms: stall_ms,
      a_second: Math.round(tried / seconds),
    }
    return { tried, faults: tried, failures: failures.slice(0, failures_max), figures }
  } finally {
    await child.remove()
  }
}

const sumOf = (counts: Readonly<Record<string, number>>): number =>
  Object.values(counts).reduce((sum, count) => sum + count, 0)
