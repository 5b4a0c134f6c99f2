/**
 * `schedule …`: tasks that are created at their due times. Times are shown in the zone of the
 * schedule and in UTC.
 */
import { defined } from '../../core/defined.ts'
import type { ScheduleDetails, ScheduleInfo } from '../../engine/api/schedule-api.ts'
import { type Exit, usageError } from '../exit-codes.ts'
import { ask, change, fileVerb, listVerb } from '../file-verb.ts'
import type { Io } from '../io.ts'
import { printDone, printResult, reasonOf } from '../output.ts'
import { fields, linesText, timeText } from '../text.ts'
import { durationMs, flag, type Given, oneOf, text, timeMs, type Verb, word } from '../verb.ts'
import { data_flag, dataOf } from './task-target.ts'

const catch_ups = ['none', 'latest', 'all'] as const

export const scheduleVerbs: readonly Verb[] = [
  fileVerb('schedule add ID CONV', {
    flags: [
      flag('cron C', "such as '0 2 * * *'; six fields begin with the second"),
      flag('every TIME', 'such as 90s, 15m, 2h or 1d'),
      flag('at TIME', 'once, at 2026-11-22T02:00:00Z, or at +2h from now'),
      flag('timezone Z', 'of --cron, such as Europe/Kyiv (default UTC)'),
      data_flag,
      flag('due-key NAME', 'the member of the data for the due time, in ms'),
      flag('catch-up HOW', 'with missed times: none, latest (default) or all'),
    ],
    says: 'create a task in a process at each due time, or change when',
    notes: [
      'One of --cron, --every and --at says when. The ref of a task is ID@ and its due time. A',
      'due time is missed while no server runs on the file, or the schedule or its process is',
      'paused.',
    ],
    run: addSchedule,
  }),
  listVerb('schedule list', 'schedule.list', {
    says: 'list the schedules and when each is due next',
    heads: ['SCHEDULE', 'PROCESS', 'STATE', 'WHEN', 'NEXT', 'IN UTC', 'LAST'],
    cellsOf: (schedule) => [
      ...[schedule.id, schedule.conv_id, schedule.state, whenText(schedule)],
      ...timesOf(schedule.next_ms, schedule.timezone),
      schedule.last?.proc ?? '-',
    ],
  }),
  fileVerb('schedule show ID', {
    says: 'show a schedule, its last due time and what came of it',
    notes: ['Parameters that the process marks as auto-clear are shown as ***.'],
    async run(given, io) {
      const found = await ask(given, io, 'schedule.show', { id: word(given, 0) })
      const { data_text, ...shown } = found
      const json = `${JSON.stringify(shown).slice(0, -1)},"data":${data_text}}`
      return printDone(given, io, json, pageOf(found))
    },
  }),
  fileVerb('schedule run ID', {
    says: 'create a task of a schedule now; its due times stay',
    async run(given, io) {
      const result = await ask(given, io, 'schedule.run', { id: word(given, 0) })
      return printResult(given, io, result, result.obj_id ?? '')
    },
  }),
  ...(
    [
      ['pause', 'create no tasks until resume', { paused: 'true' }],
      ['resume', 'let a paused schedule go on', { paused: 'false' }],
      ['remove', 'remove a schedule; its tasks stay', { removed: 'true' }],
    ] as const
  ).map(([name, says, state]) =>
    fileVerb(`schedule ${name} ID`, {
      says,
      run(given, io) {
        const id = word(given, 0)
        return change(given, io, `schedule.${name}`, { id }, { id: JSON.stringify(id), ...state })
      },
    }),
  ),
]

async function addSchedule(given: Given, io: Io): Promise<Exit> {
  const cron = text(given, 'cron')
  const every = text(given, 'every')
  const at = text(given, 'at')
  const timezone = text(given, 'timezone')
  const due_key = text(given, 'due-key')
  const catch_up = oneOf('--catch-up', text(given, 'catch-up'), catch_ups)
  if ([cron, every, at].filter((one) => one !== undefined).length !== 1) {
    throw usageError('one of --cron, --every and --at says when')
  }
  const schedule = {
    id: word(given, 0),
    conv_id: word(given, 1),
    data_text: dataOf(given),
    ...defined({ cron }),
    ...(every && { every_ms: durationMs(every) }),
    ...(at && { at_ms: timeMs('--at', at, io.clock.now_ms()) }),
    ...defined({ timezone, due_key, catch_up }),
  }
  const put = await ask(given, io, 'schedule.put', schedule)
  const [next, utc] = timesOf(put.next_ms, timezone ?? 'UTC')
  const due =
    put.next_ms === null ? 'has ended' : `due next ${next}${utc === next ? '' : ` (${utc})`}`
  return printDone(given, io, put, linesText([`schedule ${put.id}: ${put.state}, ${due}`]))
}

function whenText({ cron, every_ms, at_ms, timezone }: ScheduleInfo): string {
  if (cron !== undefined) return `${cron} in ${timezone}`
  return every_ms === undefined ? `once, ${timeText(at_ms ?? 0)}` : `every ${every_ms / 1_000} s`
}

function timesOf(ms: number | null, timezone: string): readonly [string, string] {
  if (ms === null) return ['-', '-']
  const utc = timeText(ms)
  if (timezone === 'UTC') return [utc, utc]
  const parts = { dateStyle: 'short', timeStyle: 'medium', timeZone: timezone } as const
  // The Swedish form is that of ISO 8601.
  return [`${new Intl.DateTimeFormat('sv-SE', parts).format(ms)} ${timezone}`, utc]
}

function pageOf(schedule: ScheduleDetails): string {
  const { timezone, last, left_out } = schedule
  const both = (ms: number | null): string => [...new Set(timesOf(ms, timezone))].join(', ')
  return fields([
    ['schedule', schedule.id],
    ['process', schedule.conv_id],
    ['state', schedule.state],
    ['when', whenText(schedule)],
    ['next', both(schedule.next_ms)],
    ['last', last && both(last.due_ms)],
    ['', last && (last.proc === 'ok' ? `task ${last.obj_id ?? '-'}` : reasonOf(last))],
    ['left out', left_out && `${both(left_out.from_ms)} up to ${both(left_out.to_ms)}`],
    ['catch up', schedule.catch_up],
    ['due key', schedule.due_key],
    ['data', schedule.data_text],
  ])
}
