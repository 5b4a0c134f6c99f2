/**
 * A transport over several addresses, of which one is the owner's. Calls go to the address that
 * worked last; where it fails they wait until the owner is found (owner-search.ts), all of them for
 * one search. It repeats nothing: retry.ts does.
 */
import type { Chance, Clock } from '../core/clock.ts'
import {
  type Cancellation,
  type Canceller,
  deadlineIn,
  linkedCancellation,
  newCanceller,
} from './cancellation.ts'
import { clientFault, isClientFault } from './faults.ts'
import { type Address, type Attempt, foundOwner, newSilenceWatch } from './owner-search.ts'
import {
  afterFault,
  isHarmless,
  isHarmlessCall,
  type RetryPolicy,
  realPause,
  type repeats,
} from './retry.ts'
import type { StreamOptions, TaskCalls, Transport } from './transport.ts'

export interface Failover extends Transport, Required<Pick<RetryPolicy, 'ready' | 'pause'>> {}

const doubt_ms_max = 2_000

interface Search {
  readonly over: Canceller
  readonly found: Promise<void>
  waiting: number
}

/** `patience_ms`: how long a call without a deadline waits for an owner. */
export function failover(
  transports: readonly Transport[],
  { clock, chance }: { readonly clock: Clock; readonly chance: Chance },
  patience_ms: number,
): Failover {
  const addresses = transports.map(
    (transport): Address =>
      Object.assign(transport, {
        under_way: new Set<Attempt>(),
        was_heard: false,
        silent_ticks: 0,
      }),
  )
  const closing = newCanceller()
  const pausing = new Set<Canceller>()
  const missed = new Map<Transport, string>()
  let owner: Address | undefined
  let last_used: Address | undefined
  let search: Search | undefined
  let doubt: Canceller | undefined
  const silence = newSilenceWatch(addresses, { clock, closing, owner: () => owner, askOthers })

  function goTo(address: Address): void {
    owner = address
    missed.clear()
    doubt?.cancel('over')
    for (const pause of pausing) pause.cancel('an owner is found')
  }

  const searching = { clock, chance, onMissed: (at: Transport, why: string) => missed.set(at, why) }

  function newSearch(): Search {
    const over = linkedCancellation(closing)
    const look = async (): Promise<void> => {
      const found = await foundOwner(addresses, { ...searching, takes_unready: true }, over)
      over.dispose()
      if (over.reason() !== undefined) return
      search = undefined
      if (found !== undefined) goTo(found)
    }
    return { over, found: look(), waiting: 0 }
  }

  async function found(given: Cancellation): Promise<void> {
    const deadline = deadlineIn(patience_ms, clock, given)
    search ??= newSearch()
    const joined = search
    joined.waiting++
    try {
      await new Promise<void>((resolve, reject) => {
        deadline.onCancel(resolve)
        joined.found.then(resolve, reject)
      })
      const reason = deadline.reason()
      if (isClientFault(reason) && reason.code === 'timed_out') throw noOwner()
      if (reason !== undefined) throw reason
    } finally {
      deadline.dispose()
      if (--joined.waiting === 0) {
        joined.over.cancel('no call waits')
        if (search === joined) search = undefined
      }
    }
  }

  function noOwner(): Error {
    const whys = addresses.map((address) => {
      const why = missed.get(address) ?? 'silent'
      return why.includes(address.name) ? why : `${address.name} ${why}`
    })
    const text = `no address has an owner (${whys.join('; ')})`
    return clientFault('unreachable', text, { outcome: 'not_applied' })
  }

  const ready = (cancellation: Cancellation): Promise<void> | undefined =>
    owner?.isConnected() === true ? undefined : found(cancellation)

  async function ownerNow(cancellation: Cancellation): Promise<Address> {
    for (;;) {
      const wait = ready(cancellation)
      if (wait === undefined) return owner as Address
      await wait
    }
  }

  function askOthers(address: Address): void {
    if (doubt !== undefined || owner !== address) return
    const over = deadlineIn(doubt_ms_max, clock, closing)
    doubt = over
    const others = addresses.filter((other) => other !== address)
    void foundOwner(others, { ...searching, takes_unready: false }, over).then((found) => {
      doubt = undefined
      over.dispose()
      if (found !== undefined && owner === address) goTo(found)
    })
  }

  function learn(address: Address, error: unknown): void {
    if (!isClientFault(error)) return
    const then = afterFault(error.code)
    if (then === 'leave' && owner === address) owner = undefined
    if (then === 'doubt') askOthers(address)
    if (error.code !== 'unreachable' && error.code !== 'timed_out') address.was_heard = true
  }

  async function attempt<T>(
    is_harmless: boolean,
    given: Cancellation,
    work: (address: Address, cancellation: Cancellation) => Promise<T>,
  ): Promise<T> {
    const address = await ownerNow(given)
    const mine = Object.assign(linkedCancellation(given), { is_harmless })
    address.under_way.add(mine)
    silence.watch()
    try {
      const answer = await work(address, mine)
      address.was_heard = true
      return answer
    } catch (error) {
      learn(address, error)
      throw error
    } finally {
      address.under_way.delete(mine)
      mine.dispose()
    }
  }

  /** For calls with long silences, whose transport detects a dead connection itself. */
  async function* received<T>(
    cancellation: Cancellation,
    work: (address: Address) => AsyncIterable<T>,
  ): AsyncGenerator<T, void, undefined> {
    const address = await ownerNow(cancellation)
    try {
      yield* work(address)
    } catch (error) {
      learn(address, error)
      throw error
    }
  }

  function taskCalls(): TaskCalls {
    const call = <T>(
      name: keyof typeof repeats,
      cancellation: Cancellation,
      work: (tasks: TaskCalls, cancellation: Cancellation) => Promise<T>,
    ): Promise<T> =>
      attempt(isHarmlessCall(name), cancellation, (address, cancellation) =>
        work(address.tasks as TaskCalls, cancellation),
      )
    return {
      get: (target, c) => call('task', c, (tasks, c) => tasks.get(target, c)),
      cancel: (target, c) => call('cancel', c, (tasks, c) => tasks.cancel(target, c)),
      retry: (target, to, c) => call('retry', c, (tasks, c) => tasks.retry(target, to, c)),
      list: (query, c) => call('list', c, (tasks, c) => tasks.list(query, c)),
      count: (filter, c) => call('count', c, (tasks, c) => tasks.count(filter, c)),
      async wait(target, with_history, c) {
        const address = await ownerNow(c)
        return (address.tasks as TaskCalls).wait(target, with_history, c).catch((error) => {
          learn(address, error)
          throw error
        })
      },
      changes: (options, c) => received(c, ({ tasks }) => (tasks as TaskCalls).changes(options, c)),
    }
  }

  return {
    name: addresses.map(({ name }) => name).join(', '),
    ...(addresses[0]?.tasks === undefined ? {} : { tasks: taskCalls() }),
    newName: () => (addresses[0] as Address).newName(),
    encode: (ops, name = (addresses[0] as Address).newName()) => ({
      send: (cancellation, is_repeat = false) => {
        const is_harmless = ops.every(isHarmless)
        const is_safe = is_harmless || owner?.keeps(ops) === true
        return attempt(is_safe, cancellation, async (address, cancellation) => {
          last_used = address
          if (is_repeat && !is_harmless && !address.keeps(ops)) {
            throw clientFault('bad_answer', `${address.name} may apply it a second time`)
          }
          return address.encode(ops, name).send(cancellation, is_repeat)
        })
      },
    }),
    keeps: (ops) => last_used?.keeps(ops) === true,
    stream: (source, options: StreamOptions) =>
      received(options.cancellation, (address) => address.stream(source, options)),
    isConnected: () => owner?.isConnected() === true,
    probe: async (cancellation) => (await ownerNow(cancellation)).probe(cancellation),
    ready,
    async pause(ms, cancellation) {
      const early = linkedCancellation(cancellation)
      pausing.add(early)
      await realPause(ms, early)
      pausing.delete(early)
      early.dispose()
    },
    async close() {
      closing.cancel('closed')
      await Promise.all(addresses.map((address) => address.close()))
    },
  }
}
