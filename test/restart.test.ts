/**
 * `conveyor serve`, by the unit's command line, is restarted by SIGTERM while callers load both
 * servers. They are honest: what was certainly not applied (`shutting_down`, no connection) they send
 * again until it is answered. Nothing that was answered is lost, nothing that was accepted is cut off
 * before its answer, and nothing is there twice. Where the socket is held outside the process, nobody
 * finds that nobody listens.
 *
 * How long callers had no service is printed. proof:drain ends a program with all servers far more often.
 */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { after, test } from 'node:test'
import { openEngine } from '../src/open.ts'
import { freePort } from './support/free-port.ts'
import { top } from './support/package-folder.ts'
import { buildChild } from './support/store-child.ts'
import { movedEnv, unit_env, unit_words } from './support/unit.ts'
import { newSequence } from './support/workload.ts'
import { openCallers, sendSteadily } from './support/workload-callers.ts'
import { makeWorkloadFile, type WorkloadFile } from './support/workload-file.ts'
import { judgeWorkload } from './support/workload-judge.ts'

const restarts = 1
const kinds = ['http_path', 'grpc', 'single'] as const
type Kind = (typeof kinds)[number]
const sequences_of_kind = 3
/** So many requests of each kind are answered between two restarts. */
const answered_between = 40

/** Callers whose server is gone wait for timers that keep no process alive. */
const alive = setInterval(() => {}, 60_000)
after(() => clearInterval(alive))

interface Service {
  /** HOST:PORT. */
  readonly http: string
  readonly grpc: string
  restart(): Promise<void>
  /** SIGTERM, and then its exit code. */
  end(): Promise<void>
  kill(): void
}

interface ServersFile extends WorkloadFile {
  /** The program `conveyor`, as one file. */
  readonly script: string
}

type Start = (file: ServersFile, env: NodeJS.ProcessEnv) => Promise<Service>

const no_python = spawnSync('python3', ['--version']).error && 'python3 not on this machine'

/** [what, the callers, how it starts, whether one of them finds nobody listening] */
const rows: readonly (readonly [string, readonly Kind[], Start, boolean, string | undefined])[] = [
  ['ports of its own', kinds, startAlone, true, undefined],
  ['a socket that systemd holds', ['http_path'], startHeld, false, no_python],
]

for (const [what, callers_of, start, is_refused, skip] of rows) {
  test(`${restarts} restarts under load, ${what}: nothing is lost or cut off`, {
    timeout: 600_000,
    skip: skip ?? false,
  }, async (t) => {
    const child = await buildChild('../../bin/conveyor.ts')
    const file: ServersFile = { script: child.script, ...(await makeWorkloadFile(child.folder)) }
    const sequences = callers_of.flatMap((kind) =>
      Array.from({ length: sequences_of_kind }, (_, at) => newSequence(`${kind} ${at}`, kind)),
    )
    const gaps = newGaps(callers_of)
    const stop = new AbortController()
    let service: Service | undefined
    try {
      service = await start(file, {
        ...movedEnv(unit_env, dirname(file.path)),
        ...{ CONVEYOR_DB: file.path, CONVEYOR_RUNTIME_DIR: `${dirname(file.path)}/run` },
      })
      const { http, grpc } = service
      const callers = await openCallers({ url: `http://${http}`, address: grpc, ...file.access })
      const all = Promise.all(
        sequences.map((sequence) => {
          const onAck = () => gaps.answered(sequence.kind as Kind)
          return sendSteadily(sequence, callers, { signal: stop.signal, onAck })
        }),
      )
      for (let n = 0; n < restarts; n++) {
        await Promise.race([gaps.until(answered_between), all])
        await service.restart()
      }
      await Promise.race([gaps.until(answered_between), all])
      stop.abort()
      const unserved = await all
      await callers.close()
      await service.end()

      const engine = await openEngine(file.path, { background: false })
      const { verdict, there } = await judgeWorkload(engine, sequences)
      await engine.close()
      assert.deepEqual(verdict, { lost: [], half: [], strange: [], double: [], breaches: [] })
      for (const sequence of sequences)
        assert.equal(there.get(sequence), sequence.acked, `${sequence.name} was cut off`)
      const sum = (counts: readonly number[]): number => counts.reduce((a, b) => a + b, 0)
      const refused = sum(unserved.map(({ refused }) => refused))
      assert.equal(refused > 0, is_refused, `${refused} found nobody listening`)
      const answered = sum(sequences.map(({ acked }) => acked))
      const broke = sum(unserved.map(({ broke }) => broke))
      t.diagnostic(`${answered} answered, ${broke} broke off before a server accepted them`)
      for (const kind of callers_of) t.diagnostic(`without ${kind}: ${gaps.text(kind)}`)
    } finally {
      service?.kill()
      await child.remove()
    }
  })
}

const unitArgs = ({ script }: ServersFile): string[] => [script, ...unit_words.slice(1)]

async function startAlone(file: ServersFile, env: NodeJS.ProcessEnv): Promise<Service> {
  const [http, grpc] = [`127.0.0.1:${await freePort()}`, `127.0.0.1:${await freePort()}`]
  const servers = {
    ...{ CONVEYOR_HTTP: http, CONVEYOR_GRPC: grpc, CONVEYOR_TLS: file.access.folder },
  }
  const start = async (): Promise<ChildProcess> => {
    const child = spawn(process.execPath, unitArgs(file), {
      ...{ env: { ...env, ...servers }, stdio: ['ignore', 'pipe', 'inherit'] },
    })
    await once(createInterface({ input: child.stdout as Readable }), 'line')
    return child
  }
  let child = await start()
  const end = async (): Promise<void> => {
    child.kill('SIGTERM')
    assert.deepEqual(await once(child, 'exit'), [0, null])
  }
  return {
    ...{ http, grpc, end },
    async restart() {
      await end()
      child = await start()
    },
    kill: () => void child.kill('SIGKILL'),
  }
}

async function startHeld(file: ServersFile, given: NodeJS.ProcessEnv): Promise<Service> {
  const env = { ...given, CONVEYOR_HTTP: 'fd:3' }
  const holder = join(top, 'test/support/socket-holder.py')
  const command = [holder, process.execPath, ...unitArgs(file)]
  const child = spawn('python3', command, { env, stdio: ['ignore', 'pipe', 'inherit'] })
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const next = async (): Promise<string> => (await lines.next()).value
  const http = `127.0.0.1:${await next()}`
  const pidOfNext = async (): Promise<number> => JSON.parse(await next()).pid
  let pid = await pidOfNext()
  return {
    ...{ http, grpc: '127.0.0.1:1' },
    async restart() {
      process.kill(pid, 'SIGTERM')
      pid = await pidOfNext()
    },
    async end() {
      child.kill('SIGKILL')
      process.kill(pid, 'SIGTERM')
      await once(child.stdout, 'close')
    },
    kill() {
      child.kill('SIGKILL')
    },
  }
}

/** The longest time without an answer, by kind of caller, in each round between two calls of `until`. */
function newGaps(kinds: readonly Kind[]) {
  const rows = kinds.map((kind) => ({
    kind,
    last_ms: 0,
    count: 0,
    longest_ms: 0,
    all: [] as number[],
  }))
  let [wanted, onWanted] = [0, (): void => {}]
  return {
    answered(kind: Kind): void {
      const row = rows[kinds.indexOf(kind)] as (typeof rows)[0]
      const now_ms = performance.now()
      row.longest_ms = Math.max(row.longest_ms, now_ms - row.last_ms)
      row.last_ms = now_ms
      row.count++
      if (rows.every(({ count }) => count >= wanted)) onWanted()
    },
    /** Ends a round once so many requests of each kind were answered since the last one. */
    async until(count: number): Promise<void> {
      for (const row of rows) row.count = 0
      wanted = count
      await new Promise<void>((resolve) => {
        onWanted = resolve
      })
      for (const row of rows) {
        row.all.push(row.longest_ms)
        row.longest_ms = 0
      }
    },
    /** Of the rounds with a restart in them. */
    text(kind: Kind): string {
      const { all = [] } = rows[kinds.indexOf(kind)] ?? {}
      const sorted = all.slice(1).toSorted((one, other) => one - other)
      const [p50, worst] = [sorted[Math.floor(sorted.length / 2)], sorted.at(-1)]
      return `p50 ${Math.round(p50 as number)} ms, worst ${Math.round(worst as number)} ms`
    },
  }
}
