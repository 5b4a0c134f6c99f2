/**
 * The faults that a cluster is tried with. Each is brought about on a whole cluster, and undone
 * afterwards; what is undone leaves a cluster that becomes whole by itself.
 */
import { rmSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Relay, startRelay } from '../relay.ts'
import type { Lab, LabNode } from './lab.ts'
import { type Member, server_port } from './patroni.ts'

export interface Fault {
  readonly name: string
  readonly says: string
  /** Whether callers are served again before it is healed. */
  readonly is_survived: boolean
  /** The function that heals it; undefined where the cluster or this machine has no such thing. */
  inject(lab: Lab): Promise<Heal | undefined>
}

type Heal = () => Promise<void> | void
type Act<Part> = (part: Part, lab: Lab) => Promise<Heal | undefined> | Heal | undefined

const slow_ms = 20
const day_s = 86_400

function onOwner(act: Act<LabNode>): Fault['inject'] {
  return async (lab) => {
    const owner = await lab.owner()
    return owner && act(owner, lab)
  }
}

function onStandby(act: Act<LabNode>): Fault['inject'] {
  return async (lab) => {
    const standby = await lab.standby()
    return standby && act(standby, lab)
  }
}

function onPrimary(act: Act<Member>): Fault['inject'] {
  return async (lab) => {
    const primary = await lab.database?.primary()
    return primary && act(primary, lab)
  }
}

/** What has stood still for longer than its lease goes on. */
const pause = async (part: Pick<LabNode, 'signal'>): Promise<Heal> => {
  part.signal('SIGSTOP')
  return () => part.signal('SIGCONT')
}

const killNode: Act<LabNode> = async (node) => {
  await node.kill()
  return () => node.start()
}

const handOver: Act<LabNode> = (node) => {
  const ended = node.stop()
  return async () => {
    await ended
    node.start()
  }
}

/**
 * Asked by the command line so many times, and not told to end: each goes on in its new role. What
 * is refused, because another fault has left no standby or the former owner is none yet, is so with
 * a sentence, and changes nothing.
 */
const askHandOver =
  (times: number): Act<LabNode> =>
  async (_owner, { database, run }) => {
    if (database === undefined) return undefined
    let done = 0
    for (let n = 0; n < times; n++) {
      await run(['cluster', 'hand-over', '--commit-log', database.url('conveyor')]).then(
        () => done++,
        ({ stderr = '' }: { readonly stderr?: string }) => {
          if (!refusals.test(stderr)) throw new Error(`cluster hand-over: ${stderr}`)
        },
      )
    }
    return done === 0 ? undefined : () => undefined
  }

const refusals =
  /could not be the owner|no standby|no node owns|gives no sign|does not answer|is the owner again|^conveyor: the database at/

const loseFile: Act<LabNode> = async (node) => {
  await node.kill()
  for (const end of ['', '-lock', '-log-0', '-log-1', '.owner']) {
    rmSync(`${node.path}${end}`, { force: true, recursive: true })
  }
  return () => node.start()
}

function cut(way: 'in' | 'out' | 'both'): Act<LabNode> {
  return ({ machine }, { database }) => {
    if (database === undefined) return undefined
    for (const member of database.members) machine.cutOff(member.machine.address, way)
    return () => machine.heal()
  }
}

const slowDown: Act<LabNode> = async ({ machine }, { database, network }) => {
  if (database === undefined) return undefined
  if (machine.delay(slow_ms)) return () => machine.heal()
  const relays: Relay[] = []
  for (const { machine: other } of database.members) {
    const server = { host: other.address, port: server_port }
    const relay = await startRelay(server, {
      ...{ host: network.address, there_ms: slow_ms, back_ms: slow_ms },
    })
    relays.push(relay)
    machine.redirect(server, relay)
  }
  return () => {
    machine.heal()
    for (const relay of relays) relay.close()
  }
}

/** The primary goes on for a while where no standby follows it, and dies with what it has then. */
const leaveAlone: Act<Member> = async (primary, { database }) => {
  for (const other of database?.members ?? []) {
    if (other !== primary) primary.machine.cutOff(other.machine.address, 'both')
  }
  await sleep(500)
  await primary.kill()
  return () => {
    primary.machine.heal()
    primary.start()
  }
}

function moveClock(offset_s: number): Act<LabNode> {
  return (node) => (node.setClock(offset_s) ? () => void node.setClock(0) : undefined)
}

export const faults: readonly Fault[] = [
  {
    name: 'kill_owner',
    says: 'kill -9 of the owner',
    is_survived: true,
    inject: onOwner(killNode),
  },
  {
    name: 'kill_standby',
    says: 'kill -9 of a standby',
    is_survived: true,
    inject: onStandby(killNode),
  },
  {
    name: 'lose_file',
    says: 'a standby is killed and its data file is gone',
    is_survived: true,
    inject: onStandby(loseFile),
  },
  {
    name: 'kill_server',
    says: 'kill -9 of PostgreSQL at the primary',
    is_survived: true,
    inject: onPrimary((primary) => {
      primary.killServer()
      return () => undefined
    }),
  },
  {
    name: 'kill_primary',
    says: 'the machine of the primary is gone',
    is_survived: true,
    inject: onPrimary(async (primary) => {
      await primary.kill()
      return () => primary.start()
    }),
  },
  {
    name: 'leave_primary',
    says: 'the primary is cut off from its standbys, then its machine is gone',
    is_survived: true,
    inject: onPrimary(leaveAlone),
  },
  {
    name: 'stop_owner',
    says: 'the owner stands still for longer than its lease and goes on (SIGSTOP, SIGCONT)',
    is_survived: true,
    inject: onOwner(pause),
  },
  {
    name: 'stop_primary',
    says: 'the primary stands still until another has taken over, and goes on',
    is_survived: true,
    inject: onPrimary(pause),
  },
  {
    name: 'cut_owner',
    says: 'no packet between the owner and the database',
    is_survived: true,
    inject: onOwner(cut('both')),
  },
  {
    name: 'cut_to_database',
    says: 'what the owner sends does not get to the database',
    is_survived: true,
    inject: onOwner(cut('out')),
  },
  {
    name: 'cut_from_database',
    says: 'what the database answers does not get to the owner',
    is_survived: true,
    inject: onOwner(cut('in')),
  },
  {
    name: 'slow_network',
    says: `${slow_ms} ms more each way between the owner and the database`,
    is_survived: true,
    inject: onOwner(slowDown),
  },
  {
    name: 'full_disk',
    says: 'no byte is free under the primary',
    is_survived: false,
    inject: onPrimary((primary) => primary.fillDisk()),
  },
  {
    name: 'hand_over',
    says: 'the owner is asked to end (SIGTERM) and starts again',
    is_survived: true,
    inject: onOwner(handOver),
  },
  {
    name: 'ask_hand_over',
    says: 'the owner is asked to hand over (`conveyor cluster hand-over`)',
    is_survived: true,
    inject: onOwner(askHandOver(1)),
  },
  {
    name: 'ask_hand_over_twice',
    says: 'the owner is asked to hand over, and the next one at once',
    is_survived: true,
    inject: onOwner(askHandOver(2)),
  },
  {
    name: 'clock_ahead',
    says: 'the clock of the owner goes a day ahead, and back',
    is_survived: true,
    inject: onOwner(moveClock(day_s)),
  },
  {
    name: 'clock_behind',
    says: 'the clock of a standby goes a day back, and ahead',
    is_survived: true,
    inject: onStandby(moveClock(-day_s)),
  },
]
