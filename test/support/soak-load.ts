/**
 * The load of the soak: lives that begin at a fixed rate, whether or not those before them are over,
 * so that a server that stalls is seen by each who comes meanwhile. The latency of an answer counts
 * from the time at which its request should have been sent.
 */
import { type Callers, type Life, lives } from './soak-lives.ts'

export interface Load {
  /** Since the start. */
  readonly sums: { readonly lives: number; readonly requests: number; readonly faults: number }
  /** Sentences on answers that were not as they must be, the first 20 of them. */
  readonly wrong: readonly string[]
  /**
   * Latencies since the last call, and for each request that is not answered the time that it has
   * waited.
   */
  takeLatencies_ms(): number[]
  /** Begins no more, and resolves once all are over. */
  end(): Promise<void>
}

const wrong_max = 20
const tick_ms = 2

const deck: readonly Life[] = lives.flatMap((life) =>
  Array.from({ length: life.parts }, () => life),
)

export interface Rate {
  readonly per_s: number
  /** So many lives are under way at once; where more are due, that is told as wrong. */
  readonly under_way_max: number
  /** Then those that are due begin later, and it is not wrong. */
  readonly is_yielding: boolean
}

/** `fraction` is the chance by which lives are chosen. */
export function startLoad(callers: Callers, rate: Rate, fraction: () => number): Load {
  const { per_s, under_way_max, is_yielding } = rate
  const sums = { lives: 0, requests: 0, faults: 0 }
  const wrong: string[] = []
  const under_way = new Set<Promise<void>>()
  let latencies_ms: number[] = []
  const waiting = new Set<{ readonly from_ms: number }>()
  let began_ms = performance.now()

  const begin = (due_ms: number): void => {
    const life = deck[Math.floor(fraction() * deck.length)] as Life
    const n = sums.lives++
    sums.faults += life.faults ?? 0
    let from_ms = due_ms
    const running = life
      .run(callers, n, async (answer) => {
        const request = { from_ms }
        waiting.add(request)
        const got = await answer.finally(() => waiting.delete(request))
        sums.requests++
        from_ms = performance.now()
        latencies_ms.push(from_ms - request.from_ms)
        return got
      })
      .catch((error: Error) => {
        if (wrong.length < wrong_max) wrong.push(`${life.name}, ${n}: ${error.message}`)
      })
      .finally(() => under_way.delete(running))
    under_way.add(running)
  }

  const timer = setInterval(() => {
    for (;;) {
      const due_ms = began_ms + (1_000 * sums.lives) / per_s
      if (due_ms > performance.now()) return
      if (under_way.size >= under_way_max) {
        if (is_yielding) {
          began_ms += performance.now() - due_ms
          return
        }
        clearInterval(timer)
        wrong.push(`${under_way_max} lives are under way at once`)
        return
      }
      begin(due_ms)
    }
  }, tick_ms)

  return {
    sums,
    wrong,
    takeLatencies_ms() {
      const now_ms = performance.now()
      const taken = latencies_ms
      for (const { from_ms } of waiting) taken.push(now_ms - from_ms)
      latencies_ms = []
      return taken
    },
    async end() {
      clearInterval(timer)
      await Promise.all(under_way)
    },
  }
}

/** How many lives a second there are where each of `callers_count` begins the next at once. */
export async function livesPerSecond(
  callers: Callers,
  { callers_count, ms, fraction }: { callers_count: number; ms: number; fraction: () => number },
): Promise<number> {
  const began_ms = performance.now()
  let count = 0
  const caller = async (): Promise<void> => {
    while (performance.now() < began_ms + ms) {
      const life = deck[Math.floor(fraction() * deck.length)] as Life
      await life.run(callers, 1e9 + count++, (answer) => answer)
    }
  }
  await Promise.all(Array.from({ length: callers_count }, caller))
  return (1_000 * count) / (performance.now() - began_ms)
}
