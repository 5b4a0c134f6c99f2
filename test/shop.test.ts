/**
 * A whole service on the engine (support/shop) is deployed and killed in turn while its customers
 * order, pay and wait for results. Each order ends once; no charge that was known before a deploy
 * is asked for again, and none is made under two keys; the consumer of the feed saw each change once
 * and in order; each due time made one report.
 *
 * `CONVEYOR_SLOW=1` deploys and kills 200 times. The worse shop at the end shows that the judge
 * would see it.
 */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { openEngine } from '../src/open.ts'
import { freePort } from './support/free-port.ts'
import { judgeShop, type Verdict } from './support/shop-judge.ts'
import { startLoad } from './support/shop-load.ts'
import { buildChild, type Edit } from './support/store-child.ts'

const is_slow = process.env.CONVEYOR_SLOW === '1'
const rounds = is_slow ? 200 : 4
/** A process is stopped after at most so many charges, while others are under way. */
const charges_max = is_slow ? 40 : 8
const timeout = 1_200_000

const bank = await buildChild('shop/bank.ts')
after(() => bank.remove())

test(`${rounds} deploys and kills of a shop: every order ends once`, { timeout }, async (t) => {
  const { wrong, counts } = await runShop(rounds)
  emit(t, counts)
  assert.deepEqual(wrong, [])
  assert.ok((counts['known before a deploy'] ?? 0) > 0)
  assert.ok((counts['repeats with the same key'] ?? 0) > 0)
})

/** [what is worse, the edit, what the judge says of it] */
const worse: readonly (readonly [string, Edit, RegExp])[] = [
  [
    'a close that does not wait for handlers',
    {
      file: 'engine/jobs/job-dispatcher.ts',
      from: 'const ended = Promise.all(running_jobs)',
      to: 'const ended = Promise.resolve()',
    },
    /was known before a deploy and is asked for again/,
  ],
  [
    'another key for each attempt',
    {
      file: 'shop/service.ts',
      from: "'idempotency-key': key",
      to: "'idempotency-key': String(performance.now())",
    },
    /charged under \d+ keys/,
  ],
  [
    'a consumer that does not go on where it was',
    { file: 'shop/service.ts', from: 'from: file.position ??', to: 'from:' },
    /^feed: \d+ changes twice/,
  ],
]

test('a worse shop is seen', { timeout }, async (t) => {
  const edits = worse.map(([, edit]) => edit)
  const { wrong, counts } = await runShop(4, edits)
  emit(t, counts)
  for (const [what, , sentence] of worse) {
    assert.ok(
      wrong.some((found) => sentence.test(found)),
      what,
    )
  }
})

function emit(t: TestContext, counts: Verdict['counts']): void {
  t.diagnostic(
    Object.entries(counts)
      .map(([name, count]) => `${count} ${name}`)
      .join(', '),
  )
}

/** Runs a shop under load, in as many processes one after the other, and one more until the end. */
async function runShop(stops: number, edits: readonly Edit[] = []): Promise<Verdict> {
  const shop = await buildChild('shop/service.ts', edits)
  const [feed, ledger] = [join(shop.folder, 'feed.jsonl'), join(shop.folder, 'ledger.jsonl')]
  writeFileSync(ledger, '')
  const [shop_port, bank_port] = [await freePort(), await freePort()]
  const url = `http://127.0.0.1:${shop_port}`
  const bank_process = spawn(process.execPath, [bank.script], {
    env: { PORT: String(bank_port), LEDGER: ledger },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  await once(bank_process.stdout, 'data')
  const env = {
    PORT: String(shop_port),
    DATA: shop.folder,
    BANK: `http://127.0.0.1:${bank_port}`,
    REPORT: '* * * * * *',
    DRAIN_MS: '300',
  }
  const known = new Map<string, number>()
  const giving_up = new AbortController()
  const load = startLoad(url, giving_up.signal)
  let kills = 0
  let running: Running | undefined
  const began_ms = performance.now()
  try {
    for (let n = 0; n <= stops; n++) {
      running = startShop(shop.script, env)
      const signal = n % 2 === 1 && n < stops ? 'SIGKILL' : 'SIGTERM'
      await Promise.race([n < stops ? momentOf(n, running) : load.end(), running.ended, load.ended])
      running.child.kill(signal)
      assert.deepEqual(await running.ended, signal === 'SIGTERM' ? [0, null] : [null, 'SIGKILL'])
      if (signal === 'SIGKILL') kills++
      else {
        const { size } = statSync(ledger)
        for (const ref of running.known) known.set(ref, known.get(ref) ?? size)
      }
    }
    const engine = await openEngine(join(shop.folder, 'tasks.lmdb'), { background: false })
    const { sales } = load
    const { wrong, counts } = await judgeShop({ engine, sales, ledger, feed, known })
    await engine.close()
    const seconds = Math.round((performance.now() - began_ms) / 1000)
    return { wrong, counts: { seconds, deploys: stops - kills, kills, ...counts } }
  } finally {
    giving_up.abort()
    running?.child.kill('SIGKILL')
    bank_process.kill()
    await shop.remove()
  }
}

/** When a process is stopped: amid charges, and each fourth wherever its start has come to. */
function momentOf(n: number, { charges }: Running): Promise<void> {
  return n % 4 === 3
    ? sleep(600 * Math.random())
    : charges(1 + Math.floor(charges_max * Math.random()))
}

interface Running {
  readonly child: ChildProcess
  /** The orders whose charge handler has returned. */
  readonly known: ReadonlySet<string>
  /** Resolves once there are so many. */
  charges(count: number): Promise<void>
  /** With its exit code or the signal, once all it wrote is read. */
  readonly ended: Promise<readonly [number | null, string | null]>
}

function startShop(script: string, env: NodeJS.ProcessEnv): Running {
  const child = spawn(process.execPath, [script], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  const known = new Set<string>()
  let wanted = 0
  let onWanted: (() => void) | undefined
  const lines = createInterface({ input: child.stdout })
  lines.on('line', (line) => {
    if (!line.endsWith('}')) return
    const { msg, order } = JSON.parse(line) as { msg: string; order: string }
    if (msg !== 'charge is known') return
    known.add(order)
    if (known.size === wanted) onWanted?.()
  })
  const ended = Promise.all([once(child, 'exit'), once(lines, 'close')])
  return {
    child,
    known,
    charges: (count) =>
      new Promise((resolve) => {
        wanted = count
        onWanted = resolve
      }),
    ended: ended.then(([[code, signal]]) => [code, signal]),
  }
}
