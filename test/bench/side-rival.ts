/**
 * A rival that needs a server of its own, as a side. Its processes live as long as the group. The
 * process of its callers is frozen between its slots, because some rivals poll their server.
 */
import type { ServerRivalName } from './cells.ts'
import { type Child, startChild } from './child.ts'
import { startBackend } from './rival-backends.ts'
import type { RivalCalls } from './rival-calls.ts'
import { packagesOf, rivalPackages } from './rival-packages.ts'
import type { RestateCalls } from './rival-restate.ts'
import type { Run, Side } from './side.ts'

const stored_tasks = 2_000
/** A task of Restate can be resumed only once. */
const restate_stored_tasks = 6_000

/** A rival that is not ready by then is left out. */
const start_ms_max = 120_000

/** Rejects if the rival does not start, after ending its processes. */
export async function startRival({ folder, scale }: Run, name: ServerRivalName): Promise<Side> {
  const server = await startBackend(rivalPackages(name).backend)
  const file = folder.script(`rival-${name}`)
  const packages = packagesOf(name)
  const child = startChild<RivalCalls>(file, quiet)
  const service = name === 'restate' ? startChild<RestateCalls>(file, quiet) : undefined
  const children: readonly Pick<Child<RivalCalls>, 'freeze' | 'thaw' | 'stop' | 'kill'>[] =
    service === undefined ? [child] : [child, service]

  const open = async (): Promise<void> => {
    const { port, admin_port } = server
    if (service !== undefined) {
      const service_port = await service.call('serve', { packages })
      await service.call('register', { admin_port, service_port })
    }
    const tasks_max = service === undefined ? stored_tasks : restate_stored_tasks
    const tasks = Math.min(tasks_max, scale.few_tasks)
    await child.call('open', { packages, port, admin_port, tasks })
  }
  try {
    await withTimeout(open(), start_ms_max)
  } catch (error) {
    for (const each of children) each.kill()
    await server.stop()
    throw error
  }
  for (const each of children) each.freeze()

  return {
    async measure({ verb, callers }, span) {
      if (verb === 'read') throw new Error(`${name} is not measured with reads`)
      for (const each of children) each.thaw()
      const slot = await child.call('run', { verb, callers, ...span })
      for (const each of children) each.freeze()
      return slot
    },
    async stop() {
      for (const each of children) each.thaw()
      await child.call('close')
      for (const each of children) await each.stop()
      await server.stop()
    },
  }
}

/** Warnings of a rival's packages are of no interest here. */
const quiet = ['--no-warnings']

async function withTimeout<T>(promise: Promise<T>, ms_max: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('not ready in time')), ms_max)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}
