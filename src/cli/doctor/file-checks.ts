/** The checks of `doctor` on the data file: its opening, commit log, key, tasks and schedules. */
import { health_checks } from '../../core/health-checks.ts'
import type { EngineDiagnosis } from '../../engine/file/diagnosis.ts'
import { format } from '../../engine/file/format.ts'
import { shellWord } from '../program.ts'
import { spanText, timeText } from '../text.ts'
import { bad, type Check, ok, type Verdict, warn } from './check.ts'
import type { Facts, Inside } from './facts.ts'

const lost_help =
  'look at the database, not at the node; where it is lost for good, take a backup of each node ' +
  'and go on with the one of the highest position, by `npx conveyor cluster import` or alone'
const minute_ms = 60_000
const users_named_max = 5

function fileVerdict({ state, db, fault, owner, format: found, node_has: has }: Facts): Verdict {
  const holder = owner === undefined ? 'another process' : `process ${owner.pid}`
  const says = fault === undefined ? '' : `: ${fault.message}`
  switch (state) {
    case 'missing':
      return bad(
        `there is no file ${db}`,
        'name it with --db; `npx conveyor serve` makes a new one',
      )
    case 'served':
      return ok(`${db} is served by ${holder}`)
    case 'node':
      if (fault?.code === 'overloaded') return bad(`${db} is held by ${holder}${says}`, lost_help)
      if (fault !== undefined) return ok(`${db} is held by ${holder}${says}`)
      return ok(`${db} is the copy of a node, not open, and has ${has}`)
    case 'held':
      return bad(
        `${holder} holds it and cannot be asked${says}`,
        'look at the log of that process; if it hangs, kill it: what was answered is in the file',
      )
    case 'unreadable':
      if (fault?.code === 'native_not_loaded') {
        return bad('it cannot be read', 'follow the row on native files')
      }
      return bad(`it cannot be read${says}`, 'run this as the user of the server')
    case 'refused':
      return bad(`it does not open${says}`, 'follow the sentence; keep the files as they are')
    case 'closed':
      return closedVerdict(db, found ?? 0)
  }
}

function closedVerdict(db: string, found: number): Verdict {
  if (found === format) return ok(`${db} is not open, and can be opened`)
  if (found === 0) return bad(`${db} holds something else`, 'name the data file with --db')
  if (found > format) {
    return bad(`${db} was written by a newer conveyor`, 'use that one, or a backup made before')
  }
  return bad(`${db} was written by an older conveyor (format ${found})`, 'use that one')
}

function commitLogVerdict({ state, owner, inside }: Facts): Verdict | undefined {
  if (state === 'served') return ok('it is in use')
  if (state !== 'closed' || inside === undefined) return undefined
  const { commits = 0 } = inside
  if (commits === 0) return ok('all commits are in the data file')
  const of = owner === undefined ? '' : ` of process ${owner.pid}, which did not close it`
  return warn(
    `the commit log alone has the last changes${of} (${commits}), all complete`,
    'keep both -log files beside the data file; the next opening takes them in',
  )
}

function nodeKeyVerdict(key: NonNullable<Inside['key']>): Verdict {
  const { fits, is_given, trouble } = key
  if (fits) return ok('it is that of the secrets of the cluster')
  const which = is_given ? 'CONVEYOR_KEY' : 'the key file'
  const is = trouble === undefined ? 'not the key of the cluster' : trouble.replace('_', ' ')
  return bad(`${which} is ${is}: this node cannot be the owner`, 'copy that of another node')
}

function keyVerdict({ inside, state, node_key }: Facts): Verdict | undefined {
  if (node_key !== undefined) return nodeKeyVerdict(node_key)
  if (inside === undefined || state === 'node') return undefined
  const { diagnosis, key } = inside
  const { helps: put_back, lost_helps } = health_checks.key
  const help = `${put_back}; ${lost_helps}`
  if (state === 'served') {
    const { key_problem, key_warning } = diagnosis as EngineDiagnosis
    if (key_problem !== undefined) return bad(key_problem, help)
    if (key_warning !== undefined) return warn(key_warning, put_back)
    return ok('secrets can be read')
  }
  if (key === undefined) return ok('there is no secret yet')
  if (key.fits) return ok('it is there, and the right one')
  if (key.is_given) return bad('CONVEYOR_KEY is not the key of this file', help)
  return key.trouble === undefined
    ? bad('the key file is the key of another data file', help)
    : bad(`the key file is ${key.trouble.replace('_', ' ')}: no signed request is accepted`, help)
}

/** The part of an engine that runs; undefined for a closed file. */
function running({ state, inside }: Facts): EngineDiagnosis | undefined {
  return state === 'served' ? (inside?.diagnosis as EngineDiagnosis) : undefined
}

function failedVerdicts(inside: Inside): Verdict[] {
  const failed = inside.diagnosis.processes.filter((process) => process.failed > 0)
  if (failed.length === 0) return [ok('no task has failed')]
  return failed.map(({ conv_id, failed: count, newest_failed: newest }) => {
    const when = newest && `, the newest at ${timeText(newest.at_ms)} with ${newest.tag}`
    const id = shellWord(conv_id)
    const example =
      newest && `\`npx conveyor task show ${id} ${newest.obj_id} --history\` says why; `
    return warn(
      `${count} failed in process ${conv_id}${when ?? ''}`,
      `${example ?? ''}once that is mended \`npx conveyor task retry ${id} --status failed\``,
    )
  })
}

function timerVerdicts(facts: Facts): Verdict[] {
  const { inside } = facts
  const late = (inside?.diagnosis.processes ?? []).filter(({ late_ms = 0 }) => late_ms > 0)
  if (late.length === 0) return [ok('no timer is late')]
  const most_ms = Math.max(...late.map(({ late_ms = 0 }) => late_ms))
  const ids = late.slice(0, 5).map(({ conv_id }) => conv_id)
  const says = `timers are up to ${spanText(most_ms)} late, in process ${ids.join(', ')}`
  if (running(facts) === undefined) return [warn(says, 'they fire once the file is served')]
  const help = '`npx conveyor task list --due-before 1m` shows them; look at the load and the clock'
  return [most_ms > 5 * minute_ms ? bad(says, help) : warn(says, help)]
}

function jobVerdicts(facts: Facts): Verdict[] {
  const { inside, now_ms } = facts
  if (inside === undefined) return []
  const { waiting, oldest_ms, is_more } = inside.diagnosis.jobs
  const engine = running(facts)
  const missing = (engine?.missing_handlers ?? []).map(({ conv_id, handler, tasks }) =>
    warn(
      `${tasks} tasks of process ${conv_id} wait for the handler ${handler}, which no program has`,
      `run the program that has it; \`npx conveyor process show ${shellWord(conv_id)}\``,
    ),
  )
  if (waiting === 0 || oldest_ms === undefined) return [ok('no job waits'), ...missing]
  const count = is_more ? `${waiting} or more` : String(waiting)
  const age = spanText(now_ms - oldest_ms)
  const says = `${count} calls, codes or handlers wait or are under way, for ${age}`
  if (engine === undefined) return [warn(says, 'they begin once the file is served')]
  const is_old = now_ms - oldest_ms > minute_ms
  const help = 'see what tasks wait for: `npx conveyor task list`'
  return [is_old ? warn(says, help) : ok(says), ...missing]
}

function scheduleVerdicts(facts: Facts): Verdict[] {
  const found = facts.inside?.diagnosis.schedules ?? []
  if (found.length === 0) return [ok('none is paused, late or refused')]
  return found.map(({ id, state, code, since_ms }) => {
    const since = timeText(since_ms)
    const says = {
      paused: `${id} is paused; its next due time was ${since}`,
      late: `${id} was due at ${since}`,
      missed: `${id} has left out due times from ${since} on`,
      refused: `${id} got no task at ${since}: ${code}`,
    }[state]
    const resume = `\`npx conveyor schedule resume ${shellWord(id)}\``
    const show = `\`npx conveyor schedule show ${shellWord(id)}\``
    return warn(`schedule ${says}`, state === 'paused' ? resume : show)
  })
}

export const fileChecks: readonly Check[] = [
  {
    name: 'file',
    looks_at: 'whether the data file is there, of this program, held, and opens',
    judge: fileVerdict,
  },
  {
    name: 'commit log',
    looks_at: 'whether the commit log is there and complete where the file needs it',
    judge: commitLogVerdict,
  },
  { name: 'key', looks_at: 'whether the key of the secrets is there and right', judge: keyVerdict },
  {
    name: 'users',
    looks_at: 'users who have no secret',
    judge({ inside }) {
      const { without_secret: ids = [] } = inside?.diagnosis ?? {}
      if (ids.length === 0) return undefined
      const many = ids.length > users_named_max ? ` and ${ids.length - users_named_max} more` : ''
      const says = `${ids.slice(0, users_named_max).join(', ')}${many} have no secret to sign with`
      return warn(says, `\`npx conveyor user rotate ${ids[0]}\` gives a new one, each in turn`)
    },
  },
  {
    name: 'engine',
    looks_at: 'whether the process that serves the file takes ops',
    judge(facts) {
      const health = running(facts)?.health
      if (health === undefined) return undefined
      if (health === 'ok') return ok('it takes ops')
      return bad(
        `it refuses ops: ${health}`,
        `${health_checks.commit.helps}, and at the row on the key`,
      )
    },
  },
  {
    name: 'invariants',
    looks_at: 'with --full: each invariant of the data file, as `check` does',
    judge({ inside }) {
      const { breaches } = inside ?? {}
      if (breaches === undefined) return undefined
      const [first] = breaches
      if (first === undefined) return ok('all of them hold')
      const help = '`npx conveyor check` prints all; put a backup in place of the file'
      return bad(`${breaches.length} are broken, such as: ${first}`, help)
    },
  },
  {
    name: 'failed tasks',
    looks_at: 'failed tasks by process, and the newest of each',
    judge: ({ inside }) => (inside === undefined ? undefined : failedVerdicts(inside)),
  },
  {
    name: 'timers',
    looks_at: 'timers that are due and have not fired',
    judge: (facts) => (facts.inside === undefined ? undefined : timerVerdicts(facts)),
  },
  { name: 'jobs', looks_at: 'calls, code and handlers that wait', judge: jobVerdicts },
  {
    name: 'schedules',
    looks_at: 'schedules that are paused, late, refused or have left out due times',
    judge: (facts) => (facts.inside === undefined ? undefined : scheduleVerdicts(facts)),
  },
  {
    name: 'paused',
    looks_at: 'processes that are paused',
    judge: ({ inside }) =>
      inside?.diagnosis.paused.map(({ conv_id, live }) =>
        warn(
          `process ${conv_id} is paused: it refuses ops, and its live tasks (${live}) do not move`,
          `\`npx conveyor process resume ${conv_id}\``,
        ),
      ),
  },
  {
    name: 'stubs',
    looks_at: 'processes whose calls of others are answered from a stub',
    judge: ({ inside }) =>
      inside?.diagnosis.stubs.map(({ conv_id, nodes }) =>
        warn(
          `process ${conv_id} answers the calls of ${nodes} nodes from stubs`,
          `\`npx conveyor process show ${shellWord(conv_id)}\` names them; import it without stubs`,
        ),
      ),
  },
]
