/**
 * The kinds of hostile input, each with its share of the seeds: a seed alone says of which kind it
 * is, and what is sent. Each answers what is wrong with what came of it.
 */
import { connect } from 'node:net'
import { fractionsOf } from './fractions.ts'
import { grpcFrames, grpcMessages } from './fuzz-grpc.ts'
import type { FuzzHarness } from './fuzz-harness.ts'
import { mistakeIn } from './fuzz-judge.ts'
import { operatorRequest } from './fuzz-operator.ts'
import { type Dice, diceOf } from './fuzz-ops.ts'
import {
  definitionAtRandom,
  jsonAtRandom,
  patternAtRandom,
  templateAtRandom,
} from './fuzz-parts.ts'
import { type FuzzRequest, requestAtRandom, waitsFor } from './fuzz-requests.ts'

export interface FuzzKind {
  readonly name: string
  run(harness: FuzzHarness, seed: number): Promise<string | undefined>
}

interface Row extends FuzzKind {
  /** Of 100 seeds. */
  readonly share: number
}

const diceFor = (seed: number): Dice => diceOf(fractionsOf(seed))

function requestOf(harness: FuzzHarness, seed: number): FuzzRequest {
  return requestAtRandom(diceFor(seed), { ...harness, now_s: Math.floor(Date.now() / 1_000) }, seed)
}

const rows: readonly Row[] = [
  {
    name: 'HTTP in the process',
    share: 82,
    async run(harness, seed) {
      const request = requestOf(harness, seed)
      return mistakeIn(await harness.inProcess(request), request)
    },
  },
  {
    name: 'HTTP over a socket',
    share: 4,
    async run(harness, seed) {
      const request = requestOf(harness, seed)
      const port = request.is_sync ? harness.ports.http_sync : harness.ports.http
      return mistakeIn(await overSocket(port, request.bytes, waitsFor(request)), request)
    },
  },
  {
    name: 'gRPC over a socket',
    share: 3,
    run: (harness, seed) => grpcFrames(harness, diceFor(seed)),
  },
  {
    name: "operator's page over a socket",
    share: 1,
    run: (harness, seed) => operatorRequest(harness, diceFor(seed), overSocket),
  },
  {
    name: 'messages of gRPC',
    share: 3,
    run: async (_harness, seed) => grpcMessages(diceFor(seed)),
  },
  { name: 'JSON', share: 3, run: async (_harness, seed) => jsonAtRandom(diceFor(seed)) },
  {
    name: 'definitions',
    share: 2,
    run: async (_harness, seed) => definitionAtRandom(diceFor(seed)),
  },
  {
    name: 'templates and functions',
    share: 1,
    run: async (_harness, seed) => templateAtRandom(diceFor(seed)),
  },
  {
    name: 'regular expressions',
    share: 1,
    run: async (_harness, seed) => patternAtRandom(diceFor(seed)),
  },
]

/** By the last two digits of a seed. */
const of_seed: readonly FuzzKind[] = rows.flatMap((row) => Array<Row>(row.share).fill(row))

export function kindOf(seed: number): FuzzKind {
  return of_seed[seed % of_seed.length] as FuzzKind
}

/** Sends the bytes, ends, or first waits for an answer, and reads until the other side ends too. */
function overSocket(port: number, bytes: Buffer, waits = false): Promise<Buffer> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    socket.on('data', (chunk) => {
      chunks.push(chunk)
      if (waits) socket.end()
    })
    // The server may refuse and reset before all is sent.
    socket.on('error', () => {})
    socket.on('end', () => socket.destroy())
    socket.on('close', () => resolve(Buffer.concat(chunks)))
    if (waits) socket.write(bytes)
    else socket.end(bytes)
  })
}
