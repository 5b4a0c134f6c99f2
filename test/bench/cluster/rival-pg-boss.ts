/**
 * pg-boss. A create sends a job, whose id is made of the ref. Jobs become active outside the clock,
 * fetched a thousand at a time; a callback completes one, with the message as its output.
 */
import { loadPackage } from '../rival-packages.ts'
import { serveLives } from './lives-calls.ts'

interface Boss {
  on(event: 'error', listener: (error: unknown) => void): void
  start(): Promise<unknown>
  stop(options: { graceful: boolean }): Promise<void>
  createQueue(name: string): Promise<void>
  send(name: string, data: object, options: { id: string }): Promise<string | null>
  fetch(name: string, options: { batchSize: number }): Promise<readonly object[] | null>
  complete(name: string, id: string, output: object): Promise<unknown>
}

type BossClass = new (options: object) => Boss

const queue = 'bench'
const batch = { batchSize: 1_000 }
/** More connections than by default, with which it was faster. */
const connections = 32

serveLives(async ({ packages, host, port }) => {
  const Boss = loadPackage<BossClass>(packages, 'pg-boss')
  const boss = new Boss({
    connectionString: `postgres://postgres@${host}:${port}/postgres`,
    ...{ supervise: false, schedule: false, max: connections },
  })
  boss.on('error', (error) => console.error(error))
  await boss.start()
  await boss.createQueue(queue)
  return {
    async create(ref, data) {
      if ((await boss.send(queue, data, { id: idOf(ref) })) === null) throw new Error('no job')
    },
    callback: (ref, data) => boss.complete(queue, idOf(ref), data),
    async prepare() {
      while (((await boss.fetch(queue, batch)) ?? []).length > 0);
    },
    close: () => boss.stop({ graceful: false }),
  }
})

/** A UUID of a ref's 16 hexadecimal digits. */
function idOf(ref: string): string {
  return `${ref.slice(0, 8)}-${ref.slice(8, 12)}-4000-8000-${ref.slice(12)}00000000`
}
