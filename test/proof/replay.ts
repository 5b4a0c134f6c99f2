/**
 * Requests that come again: each is sent one to four times over HTTP, gRPC or by a call of the
 * library, at random times, while the process is killed between a commit and its answer, started
 * again, and its clock is set by a day and back. A request without an answer is sent until it has
 * one. In the end each modify has released one wait, each create has made one task, and all answers
 * to a request were the same bytes.
 *
 * A round has 40 requests and two kills. The control keeps no replays.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { hmacOf, signatureOf } from '../../src/codec/signature.ts'
import type { ReplayMode } from '../../src/engine/api/engine-api.ts'
import { loadSchema } from '../../src/server/grpc/schema.ts'
import { fractionsOf } from '../support/fractions.ts'
import { openClient } from '../support/grpc-client.ts'
import type { ReplayCalls } from '../support/replay-child.ts'
import { type BuiltChild, buildChild } from '../support/store-child.ts'
import { type Given, type Outcome, type Proof, type Tried, tryEach } from './proof.ts'

const requests = 40
const kills = 2
/** Also on a machine that is busy. */
const delivery_ms_max = 60_000
const counters = ['a', 'b', 'c', 'd']
const user = '13000'
const { ApplyOps } = loadSchema().service

interface Child {
  /** Rejects where the child dies first. */
  call<Name extends keyof ReplayCalls>(
    name: Name,
    ...args: Parameters<ReplayCalls[Name]>
  ): Promise<Awaited<ReturnType<ReplayCalls[Name]>>>
  kill(): void
  readonly died: Promise<true>
}

function startChild(script: string): Child {
  const child = fork(script, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const open = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>()
  let ids = 0
  child.on('error', () => {})
  child.on('message', ({ id, value, error }: { id: number; value: unknown; error?: string }) => {
    const waiting = open.get(id)
    open.delete(id)
    if (error === undefined) waiting?.resolve(value)
    else waiting?.reject(new Error(error))
  })
  const died = once(child, 'exit').then((): true => {
    for (const { reject } of open.values()) reject(new Error('the child has died'))
    open.clear()
    return true
  })
  return {
    call: (name, ...args) =>
      new Promise((resolve, reject) => {
        if (!child.connected) throw new Error('the child has died')
        const id = ids++
        open.set(id, { resolve: resolve as (value: unknown) => void, reject })
        child.send({ id, name, args })
      }),
    kill: () => void child.kill('SIGKILL'),
    died,
  }
}

/** A running child, and how to reach it. */
interface Running {
  readonly child: Child
  readonly port: number
  readonly grpc: ReturnType<typeof openClient>
}

interface Request {
  /** How often it modifies each counter, and makes tasks. */
  readonly effects: readonly number[]
  readonly creates: number
  /** The bytes of the answer; rejects where there is none, or one that says nothing of the ops. */
  send(to: Running): Promise<string>
  readonly answers: string[]
}

async function round(built: BuiltChild, mode: ReplayMode, seed: number): Promise<Tried> {
  const fraction = fractionsOf(seed)
  const below = (n: number): number => Math.floor(fraction() * n)
  const folder = mkdtempSync(join(tmpdir(), 'conveyor-replay-'))
  const path = join(folder, 'tasks.lmdb')
  const start = async (): Promise<Running> => {
    const child = startChild(built.script)
    const { port, grpc } = await child.call('open', path, mode)
    return { child, port, grpc: openClient(grpc) }
  }
  let running = await start()
  let starting: Promise<void> | undefined
  let faults = 0
  const call: Child['call'] = (...args) => running.child.call(...args)
  const again = (): Promise<void> => {
    starting ??= (async () => {
      running.grpc.close()
      running.child.kill()
      running = await start()
      starting = undefined
    })()
    return starting
  }
  try {
    const secret = await call('prepare', counters)
    const made = Array.from({ length: requests }, (_, n) => newRequest(n))
    /** A copy of a request, sent until it is answered. */
    const deliver = async (request: Request): Promise<void> => {
      const until_ms = performance.now() + delivery_ms_max
      for (;;) {
        try {
          request.answers.push(await request.send(running))
          return
        } catch (error) {
          if (performance.now() > until_ms) throw error
          await pause(20)
        }
      }
    }
    const copies = made.flatMap((request) =>
      Array.from({ length: 1 + below(4) }, () => ({ request, at: fraction() })),
    )
    copies.sort((one, other) => one.at - other.at)
    // A kill between a commit and its answer, in each part of the copies; a clock step between.
    const part = Math.ceil(copies.length / (kills + 1))
    for (let at = 0; at < copies.length; at += part) {
      if (at > 0) {
        await call('dieAfter', 1 + below(5))
      }
      const sent = copies.slice(at, at + part).map(({ request }) => deliver(request))
      const settled = Promise.allSettled(sent)
      if (at > 0) {
        const is_dead = await Promise.race([settled.then(() => false), running.child.died])
        if (is_dead) {
          faults++
          await again()
        } else await call('dieAfter', 0).catch(again)
      } else {
        await call('setClock', (below(2) === 0 ? 1 : -1) * 86_400_000)
        faults++
        await pause(below(30))
        await call('setClock', 0)
      }
      await Promise.all(sent)
    }
    const { counts, tasks, breaches } = await call('read', counters)
    const wrong = [...breaches]
    const expected = counters.map((_, at) =>
      made.reduce((sum, { effects }) => sum + (effects[at] as number), 0),
    )
    const expected_tasks = made.reduce((sum, { creates }) => sum + creates, counters.length)
    if (counts.join() !== expected.join()) wrong.push(`modified ${counts}, sent ${expected}`)
    if (tasks !== expected_tasks) wrong.push(`${tasks} tasks, ${expected_tasks} sent`)
    for (const { answers } of made) {
      const [first, ...others] = new Set(answers)
      if (others.length > 0) wrong.push(`answered ${first}, then ${others}`)
    }
    return wrong.length === 0 ? { faults } : { faults, failure: wrong.join('\n') }

    function newRequest(n: number): Request {
      // Without replays the server takes no keys.
      const way = mode === 'answer' ? below(4) : below(2)
      const effects = counters.map(() => 0)
      let creates = 0
      const ops = Array.from({ length: 1 + below(3) }, (_, place) => {
        const kind = below(4)
        const common = { obj: 'task', conv_id: 1234, data: { request: n, place } }
        if (kind > 0) {
          const counter = below(counters.length)
          effects[counter] = (effects[counter] as number) + 1
          return { ...common, type: 'modify', ref: counters[counter] as string }
        }
        creates++
        const is_named = way < 2 || below(2) === 0
        return { ...common, type: 'create', ...(is_named ? { ref: `${n}-${place}` } : {}) }
      })
      const key = below(2) === 0 ? `request-${seed}-${n}` : uuidOf(Date.now(), fraction)
      const sends = [http('path'), http('hmac'), overGrpc, inProcess]
      return { effects, creates, answers: [], send: sends[way] as Request['send'] }

      function http(sign: 'path' | 'hmac'): Request['send'] {
        const body = JSON.stringify({ ops })
        const timestamp = `${Math.floor(Date.now() / 1000)}.${n}`
        const base = `/api/${1 + below(2)}/json`
        const is_path = sign === 'path'
        const signature = (is_path ? signatureOf : hmacOf)(timestamp, secret, body)
        const path = is_path ? `${base}/${user}/${timestamp}/${signature}` : base
        const login = { 'X-API-Login': user, 'X-API-Timestamp': timestamp }
        const headers = is_path ? {} : { ...login, 'X-API-Signature': signature }
        return async ({ port }) => {
          const answer = await post(port, path, headers, body)
          // Stale while the clock is wrong.
          if (!answer.startsWith('{"request_proc":"ok"')) throw new Error(answer)
          return answer
        }
      }

      async function overGrpc({ grpc }: Running): Promise<string> {
        const messages = ops.map(({ type, ref, data }) => ({
          [type]: { conv_id: '1234', ref, data_json: Buffer.from(JSON.stringify(data)) },
        }))
        const answer = await grpc.call('ApplyOps', { ops: messages, request_key: key })
        return ApplyOps.responseSerialize(answer).toString('base64')
      }

      function inProcess(): Promise<string> {
        return call('apply', ops, key)
      }
    }
  } finally {
    running.grpc.close()
    running.child.kill()
    rmSync(folder, { recursive: true, force: true })
  }
}

function uuidOf(now_ms: number, fraction: () => number): string {
  const time = now_ms.toString(16).padStart(12, '0')
  const digits = Array.from({ length: 18 }, () => Math.floor(fraction() * 16).toString(16)).join('')
  const [a, b, c] = [digits.slice(0, 3), digits.slice(3, 6), digits.slice(6)]
  return `${time.slice(0, 8)}-${time.slice(8)}-7${a}-8${b}-${c}`
}

/** On a connection of its own; rejects where that breaks off. */
function post(port: number, path: string, headers: object, body: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const how = { port, path, method: 'POST', headers: { ...headers }, agent: false } as const
    const sent = request(how, (response) => {
      text(response).then(resolve, reject)
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms)
  })
}

let building: Promise<BuiltChild> | undefined

/** One for the claim and its control. */
function builtChild(): Promise<BuiltChild> {
  building ??= buildChild('replay-child.ts').then((built) => {
    process.once('exit', () => rmSync(built.folder, { recursive: true, force: true }))
    return built
  })
  return building
}

function rounds(mode: ReplayMode): (given: Given) => Promise<Outcome> {
  return async (given) => {
    const built = await builtChild()
    const outcome = await tryEach(given, (seed) => round(built, mode, seed))
    return { ...outcome, figures: { requests: outcome.tried * requests } }
  }
}

export const proof: Proof = {
  name: 'replay',
  says: 'a request that comes again is applied once and answered the same, over kills and clock steps',
  unit: 'rounds',
  quick: 1,
  long: 100,
  run: rounds('answer'),
  controls: [{ says: 'no replays are kept', quick: 1, long: 3, run: rounds('off') }],
}
