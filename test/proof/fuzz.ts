/**
 * Random hostile input to every parser of foreign bytes: HTTP requests in the process and over
 * sockets, gRPC, the operator's page, definitions, templates, regular expressions, JSON. A grammar
 * makes inputs with a known answer, which must be exactly right; others have bytes changed. Nothing
 * crashes, blocks the event loop for a second or applies an unsigned request; afterwards the engine
 * passes its check and serves. Requests in the process go through Node's HTTP server on a stream.
 */
import { availableParallelism } from 'node:os'
import { runChild } from '../support/child-tries.ts'
import { builtOnce, type Edit } from '../support/store-child.ts'
import type { Failure, Given, Outcome, Proof } from './proof.ts'

/** For fewer seeds a second process does not pay. */
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
const stalls: Edit = {
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
    control('a parser that blocks for a second', stalls, / was blocked for /),
  ],
}

/** Counts only failures that match `finds`, not those that follow from them. */
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
  const { script } = await builtOnce('fuzz-child.ts', edits)
  const children = Math.max(1, Math.min(availableParallelism(), Math.floor(n / seeds_a_child_min)))
  const began_ms = performance.now()
  const failures: Failure[] = []
  const counts: Record<string, number> = {}
  let [stall_ms, reported] = [0, 0]
  const take = (line: Line): void => {
    if (line.failure !== undefined && finds.test(line.failure)) {
      failures.push({ seed: line.seed ?? seed, says: line.failure })
    }
    for (const [kind, count] of Object.entries(line.counts ?? {})) {
      counts[kind] = (counts[kind] ?? 0) + count
    }
    stall_ms = Math.max(stall_ms, line.stall_ms ?? 0)
    const done = sumOf(counts)
    if (done - reported >= n / 10 && done < n) {
      reported = done
      emit(`${done} of ${n}, ${failures.length} failures`)
    }
  }
  const share = Math.ceil(n / children)
  const shares = Array.from({ length: children }, (_, at) => at * share).filter((at) => at < n)
  await Promise.all(
    shares.map(async (at) => {
      let last = seed + at
      const args = [script, last, Math.min(share, n - at)].map(String)
      const how = await runChild<Line>(args, (line) => {
        last = line.seed ?? last
        take(line)
        return failures.length >= failures_max ? 'enough' : undefined
      })
      if (how !== undefined)
        take({ seed: last, failure: `after seed ${last} the process ended: ${how}` })
    }),
  )
  const seconds = (performance.now() - began_ms) / 1_000
  // A child that is ended for its failures has not printed its counts.
  const tried = Math.max(sumOf(counts), failures.length)
  const inputs = Object.entries(counts).map(([kind, count]) => `${kind} ${count}`)
  const figures = {
    inputs: inputs.join(', '),
    longest_turn_ms: stall_ms,
    a_second: Math.round(tried / seconds),
  }
  return { tried, faults: tried, failures: failures.slice(0, failures_max), figures }
}

const sumOf = (counts: Readonly<Record<string, number>>): number =>
  Object.values(counts).reduce((sum, count) => sum + count, 0)
