/**
 * `schedule …`: tasks that are created at their due times. Times are shown in the zone of the
 * schedule and in UTC.
 */
import type { ScheduleDetails, ScheduleInfo, ScheduleRun } from '../../engine/api/schedule-api.ts'
import { withAdmin } from '../admin-connection.ts'
import { type Exit, usageError } from '../exit-codes.ts'
import type { Io } from '../io.ts'
import {
  clean,
  columns,
  jsonOf,
  printDone,
  printList,
  printResult,
  reasonOf,
  timeText,
} from '../output.ts'
import { durationMs, timeMs } from '../times.ts'
import { db_flag, type Given, isOn, json_flag, oneOf, text, type Verb, word } from '../verb.ts'
import { data_flag, dataOf } from './task-target.ts'

const flags = [db_flag, json_flag]
const id_word = { name: 'ID' }
const catch_ups = ['none', 'latest', 'all'] as const

export const scheduleVerbs: readonly Verb[] = [
  {
    name: 'schedule add',
    words: [id_word, { name: 'CONV' }],
    flags: [
      { name: 'cron', value: 'C', says: "such as '0 2 * * *'; six fields begin with the second" },
      { name: 'every', value: 'TIME', says: 'such as 90s, 15m, 2h or 1d' },
      { name: 'at', value: 'TIME', says: 'once, at 2026-11-22T02:00:00Z, or at +2h from now' },
      { name: 'timezone', value: 'Z', says: 'of --cron, such as Europe/Kyiv (default UTC)' },
      data_flag,
      { name: 'due-key', value: 'NAME', says: 'the member of the data for the due time, in ms' },
      { name: 'catch-up', value: 'HOW', says: 'with missed times: none, latest (default) or all' },
      ...flags,
    ],
    says: 'create a task in a process at each due time, or change when',
    notes: [
      'One of --cron, --every and --at says when. The ref of a task is ID@ and its due time. A',
      'due time is missed while no server runs on the file, or the schedule or its process is',
      'paused.',
    ],
    run: addSchedule,
  },
  {
    name: 'schedule list',
    words: [],
    flags,
    says: 'list the schedules and when each is due next',
    async run(given, io) {
      const schedules = await withAdmin(given, io, (admin) => admin.call('schedule.list', {}))
      return printList(io, isOn(given, 'json'), schedules, {
        jsonOf: (schedule) => JSON.stringify(schedule),
        heads: ['SCHEDULE', 'PROCESS', 'STATE', 'WHEN', 'NEXT', 'IN UTC', 'LAST'],
        cellsOf: (schedule) => [
          schedule.id,
          schedule.conv_id,
          schedule.state,
          whenText(schedule),
          ...timesOf(schedule.next_ms, schedule.timezone),
          schedule.last?.proc ?? '-',
        ],
      })
    },
  },
  {
    name: 'schedule show',
    words: [id_word],
    flags,
    says: 'show a schedule, its last due time and what came of it',
    notes: ['Parameters that the process marks as auto-clear are shown as ***.'],
    async run(given, io) {
      const id = word(given, 0)
      const found = await withAdmin(given, io, (admin) => admin.call('schedule.show', { id }))
      const { data_text, ...shown } = found
      const json = `${JSON.stringify(shown).slice(0, -1)},"data":${data_text}}`
      return printDone(io, isOn(given, 'json'), json, pageOf(found))
    },
  },
  {
    name: 'schedule run',
    words: [id_word],
    flags,
    says: 'create a task of a schedule now; its due times stay',
    async run(given, io) {
      const id = word(given, 0)
      const result = await withAdmin(given, io, (admin) => admin.call('schedule.run', { id }))
      return printResult(io, isOn(given, 'json'), result, result.obj_id ?? '')
    },
  },
  ...(
    [
      ['pause', 'create no tasks until resume', { paused: 'true' }],
      ['resume', 'let a paused schedule go on', { paused: 'false' }],
      ['remove', 'remove a schedule; its tasks stay', { removed: 'true' }],
    ] as const
  ).map(
    ([name, says, state]): Verb => ({
      name: `schedule ${name}`,
      words: [id_word],
      flags,
      says,
      async run(given, io) {
        const id = word(given, 0)
        await withAdmin(given, io, (admin) => admin.call(`schedule.${name}`, { id }))
        return printDone(io, isOn(given, 'json'), jsonOf({ id: JSON.stringify(id), ...state }))
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
    ...(cron === undefined ? {} : { cron }),
    ...(every === undefined ? {} : { every_ms: durationMs(every) }),
    ...(at === undefined ? {} : { at_ms: timeMs('--at', at, io.clock.now_ms()) }),
    ...(timezone === undefined ? {} : { timezone }),
    ...(due_key === undefined ? {} : { due_key }),
    ...(catch_up === undefined ? {} : { catch_up }),
  }
  const put = await withAdmin(given, io, (admin) => admin.call('schedule.put', schedule))
  const [next, utc] = timesOf(put.next_ms, timezone ?? 'UTC')
  const due =
    put.next_ms === null ? 'has ended' : `due next ${next}${utc === next ? '' : ` (${utc})`}`
  const line = `schedule ${clean(put.id)}: ${put.state}, ${due}\n`
  return printDone(io, isOn(given, 'json'), JSON.stringify(put), line)
}

function whenText({ cron, every_ms, at_ms, timezone }: ScheduleInfo): string {
  if (cron !== undefined) return `${cron} in ${timezone}`
  return every_ms === undefined ? `once, ${timeText(at_ms ?? 0)}` : `every ${every_ms / 1_000} s`
}

/** In the zone, and in UTC. */
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
  return columns([
    ['schedule', schedule.id],
    ['process', schedule.conv_id],
    ['state', schedule.state],
    ['when', whenText(schedule)],
    ['next', both(schedule.next_ms)],
    ...(last === undefined ? [] : lastRows(last, both)),
    ...(left_out === undefined
      ? []
      : [['left out', `${both(left_out.from_ms)} up to ${both(left_out.to_ms)}`] as const]),
    ['catch up', schedule.catch_up],
    ...(schedule.due_key === undefined ? [] : [['due key', schedule.due_key] as const]),
    ['data', schedule.data_text],
  ])
}

function lastRows(last: ScheduleRun, both: (ms: number) => string): (readonly string[])[] {
  const what = last.proc === 'ok' ? `task ${last.obj_id ?? '-'}` : reasonOf(last)
  return [
    ['last', both(last.due_ms)],
    ['', what],
  ]
}
