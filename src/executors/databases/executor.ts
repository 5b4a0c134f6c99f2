/**
 * The executor of queries: a pool of connections for each database, opened when first needed. It
 * never retries and never rejects. A job has a slot of the instance, so there are never more than
 * `max` connections; an idle one is closed after a minute. Every wait has an end: by the time of
 * the query, and for the answer by its bytes, after which the connection is destroyed.
 */
import { Socket } from 'node:net'
import type { Clock } from '../../core/clock.ts'
import type { Limits } from '../../core/limits.ts'
import type { Job } from '../../engine/jobs/job-dispatcher.ts'
import type { ErrorType, JobOrder, JobOutcome, SqlDialect } from '../../process/logic.ts'
import { type Answer, newAnswer } from './answer.ts'
import { type Attempt, newAttempt } from './attempt.ts'
import type { Connection, Driver, Trouble, TroubleKind } from './connection.ts'
import type { DatabaseInstance, Instances } from './instances.ts'

type Order = Extract<JobOrder, { job: 'db' }>

export interface QueryExecutor {
  run(order: Order, job: Pick<Job, 'key' | 'signal'>): Promise<JobOutcome>
  /** Ends all connections, and the queries under way. */
  close(): void
}

const idle_ms_max = 60_000
const connect_ms_max = 10_000
/** After the time of the query, for a server that ends it by itself and says so. */
const grace_ms = 500
const reset_ms_max = 1_000
const spare_bytes = 1024 * 1024
/** A row has more bytes on its way than in the answer, but not so many times. */
const bytes_per_answer_byte = 4

const drivers: Readonly<Record<SqlDialect, () => Promise<Driver>>> = {
  postgres: async () => (await import('./postgres.ts')).postgres,
  mysql: async () => (await import('./mysql.ts')).mysql,
}

const failures: Readonly<
  Record<TroubleKind | 'large', { readonly error_type: ErrorType; readonly tag: string }>
> = {
  lost: { error_type: 'hardware', tag: 'db_call_connection_error' },
  late: { error_type: 'hardware', tag: 'db_call_timeout' },
  refused: { error_type: 'software', tag: 'db_call_executing_error' },
  large: { error_type: 'software', tag: 'db_call_size_overflow_limit' },
}

export function newQueryExecutor(
  instances: Instances,
  { task_bytes_max }: Pick<Limits, 'task_bytes_max'>,
  clock: Clock,
): QueryExecutor {
  /** Each with what stops its end. */
  const idle = new Map<DatabaseInstance, Map<Connection, () => void>>()
  const open = new Set<Socket>()
  let is_closed = false

  function takeIdle(instance: DatabaseInstance): Connection | undefined {
    for (const [one, cancel] of idle.get(instance) ?? []) {
      idle.get(instance)?.delete(one)
      cancel()
      if (one.isOver()) continue
      one.socket.ref()
      return one
    }
    return undefined
  }

  function keep(instance: DatabaseInstance, connection: Connection): void {
    const kept = idle.get(instance) ?? new Map()
    const cancel = clock.wake_at(clock.now_ms() + idle_ms_max, () => {
      kept.delete(connection)
      connection.destroy()
    })
    idle.set(instance, kept.set(connection, cancel))
    // An idle connection keeps no process alive.
    connection.socket.unref()
  }

  /** A session may hold a lock or a transaction: nothing of it stays for the next job. */
  async function giveBack(
    instance: DatabaseInstance,
    connection: Connection,
    attempt: Attempt,
  ): Promise<void> {
    attempt.endAfter(reset_ms_max, 'late')
    await attempt
      .unlessEnded(connection.reset())
      .then(() => keep(instance, connection), connection.destroy)
  }

  async function connect(driver: Driver, instance: DatabaseInstance, attempt: Attempt) {
    const socket = new Socket()
    open.add(socket)
    socket.once('close', () => open.delete(socket))
    attempt.use(socket)
    return driver.connect(instance, socket)
  }

  /** A connection that was idle may have been cut meanwhile: then one is opened. */
  async function ready(
    driver: Driver,
    instance: DatabaseInstance,
    key: string,
    time_ms_max: number,
    attempt: Attempt,
  ): Promise<Connection> {
    const old = takeIdle(instance)
    if (old !== undefined) {
      attempt.use(old.socket)
      try {
        await old.begin(key, time_ms_max)
        return old
      } catch (error) {
        old.destroy()
        if (attempt.ended() !== undefined) throw error
      }
    }
    const made = await connect(driver, instance, attempt)
    await made.begin(key, time_ms_max)
    return made
  }

  return {
    async run({ instance: name, text, values, time_ms_max: wanted_ms }, { key, signal }) {
      const instance = instances.get(name) as DatabaseInstance
      const time_ms_max = Math.min(wanted_ms, instance.timeout_ms)
      const answer = newAnswer({ bytes_max: task_bytes_max, rows_max: instance.rows_max })
      const attempt = newAttempt(clock, signal)
      let driver: Driver | undefined
      let connection: Connection | undefined
      try {
        if (is_closed) throw new Error('closed')
        driver = await drivers[instance.driver]()
        attempt.endAfter(Math.min(time_ms_max, connect_ms_max), 'late_to_connect')
        connection = await attempt.unlessEnded(ready(driver, instance, key, time_ms_max, attempt))
        attempt.endAfter(time_ms_max + grace_ms, 'late')
        attempt.watch(task_bytes_max * bytes_per_answer_byte + spare_bytes)
        const count = await attempt.unlessEnded(connection.run(text, values, answer))
        // The last row may be the one too many, before the connection is seen to be closed.
        if (answer.overflow() !== undefined) throw new Error('too large')
        await giveBack(instance, connection, attempt)
        return { outcome: 'done', text: answer.text(count) }
      } catch (error) {
        const { trouble, says } = driver?.troubleOf(error) ?? lost(error)
        // Before there is a connection, whatever is refused is the connection.
        const kind = connection === undefined ? 'lost' : trouble
        const outcome = failureOf({ trouble: kind, says }, attempt, answer)
        if (connection !== undefined && kind === 'refused') {
          await giveBack(instance, connection, attempt)
        } else attempt.destroy()
        return outcome
      } finally {
        attempt.dispose()
      }
    },
    close() {
      is_closed = true
      for (const socket of open) socket.destroy()
    },
  }
}

function lost(error: unknown): Trouble {
  return { trouble: 'lost', says: (error as Error).message }
}

function failureOf({ trouble, says }: Trouble, { ended }: Attempt, answer: Answer): JobOutcome {
  const failed = (kind: keyof typeof failures, description: string): JobOutcome => ({
    outcome: 'failed',
    ...failures[kind],
    description,
    may_pass: failures[kind].error_type === 'hardware',
  })
  const too_large = answer.overflow() ?? (ended() === 'large' ? 'too many bytes' : undefined)
  if (too_large !== undefined) {
    return failed('large', `the answer has ${too_large}: let the query return less`)
  }
  if (ended() === 'late_to_connect') return failed('lost', 'the database does not answer')
  if (ended() === 'late') return failed('late', 'the query took too long')
  return failed(trouble, says)
}
