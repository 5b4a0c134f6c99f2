/**
 * A rival with a server of its own as a side. Its processes live as long as the group; the caller's
 * is frozen between its slots, since some go on asking their server by themselves.
 */
import type { ServerRivalName } from './cells.ts'
import { type Child, startChild } from './child.ts'
import type { RivalCalls } from './rival-calls.ts'
import { packagesOf, rival_packages } from './rival-packages.ts'
import type { RestateCalls } from './rival-restate.ts'
import { startServer } from './rival-servers.ts'
import type { Run, Side } from './side.ts'

/** Restate's tasks are resumed once; the others' again and again. */
const tasks_found = 2_000
const tasks_found_once = 6_000

/** A rival that takes longer to get ready does not work here. */
const start_ms_max = 120_000

/** Throws where the rival does not come up; nothing of it is left then. */
export async function startRival({ folder, scale }: Run, name: ServerRivalName): Promise<Side> {
  const kind = rival_packages.find((kind) => kind.name === name)
  if (kind === undefined) throw new Error(`${name} is no rival`)
  const server = await startServer(kind.backend)
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
      await service.call('introduce', { admin_port, service_port })
    }
    const wanted = service === undefined ? tasks_found : tasks_found_once
    const tasks = Math.min(wanted, scale.few_tasks)
    await child.call('open', { packages, port, admin_port, tasks })
  }
  try {
    await inTime(open(), start_ms_max)
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

/** What a rival's own packages warn of is not this bench's. */
const quiet = ['--no-warnings']

async function inTime<T>(work: Promise<T>, ms_max: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('it does not get ready')), ms_max)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}
