/**
 * Callers who ask for more than their rights: each op with each set of rights, tasks by the ids of
 * other processes, users and rights that are gone. Every other row is signed in headers.
 */
import type { Can } from '../../../src/engine/api/process-api.ts'
import { conv_id, definition, node, openHttp, type Signing, type TestHttp } from '../http-server.ts'
import type { HostileClass, HostileRow, HostileRunner } from './row.ts'

const cans: readonly Can[] = ['create', 'modify', 'show']
/** By the bits of a number: all sets of rights. */
const sets = Array.from({ length: 8 }, (_, bits) => cans.filter((_, at) => (bits >> at) & 1))
const user_of_set = (at: number): string => String(20_000 + at)
/** He may do all in process 1236, and nothing in 1235. */
const elsewhere = '20100'

interface Harness {
  readonly server: TestHttp
  readonly secrets: Readonly<Record<string, string>>
  /** Ids of tasks that wait, by their process. */
  readonly ids: Readonly<Record<string, string>>
  /** A new user with rights in process 1234, and what signs as him. */
  newUser(): Promise<Signing & { readonly user: string }>
}

/** The op or ops, and who signs. */
type Sent = (
  on: Harness,
) => Promise<readonly [asked: object, how: Signing]> | readonly [object, Signing]
type Row = HostileRow<Sent>

const op = (type: string, more: object = {}): object => ({
  ...{ type, obj: 'task', conv_id, data: {} },
  ...(type === 'create' ? {} : { ref: 'there' }),
  ...more,
})
const as = ({ secrets }: Harness, user: string): Signing => ({
  user,
  secret: secrets[user] as string,
})
const denied = 'access_denied'

/** [what it is, the codes, the ops, of the user with all rights in 1234, given the ids of tasks]. */
const by_one: readonly (readonly [string, string, (ids: Harness['ids']) => object])[] = [
  ['a process of others', denied, () => op('create', { conv_id: '1235' })],
  ['a process that is not there', denied, () => op('create', { conv_id: '999' })],
  [
    'show in a process of others',
    denied,
    (ids) => op('show', { conv_id: '1235', obj_id: ids['1235'] }),
  ],
  [
    'modify in a process of others',
    denied,
    (ids) => op('modify', { conv_id: '1235', obj_id: ids['1235'] }),
  ],
  [
    'an id of others, shown as his own',
    'not_found_task',
    (ids) => op('show', { ref: undefined, obj_id: ids['1235'] }),
  ],
  [
    'an id of others, modified as his own',
    'not_found_task',
    (ids) => op('modify', { ref: undefined, obj_id: ids['1235'] }),
  ],
  [
    'an id of others beside a ref of his own',
    'not_found_task',
    (ids) => op('modify', { obj_id: ids['1235'] }),
  ],
  [
    'an id of others, its wait named',
    'not_found_task',
    (ids) => op('modify', { ref: undefined, obj_id: ids['1235'], is_sync: true }),
  ],
  [
    'an id in capitals',
    'not_found_task',
    (ids) => op('show', { ref: undefined, obj_id: ids['1234']?.toUpperCase().replace(/^./, 'F') }),
  ],
  [
    'an id with a space',
    'error',
    (ids) => op('show', { ref: undefined, obj_id: `${ids['1234']} ` }),
  ],
  ['an id that is a list', 'error', (ids) => op('show', { ref: undefined, obj_id: [ids['1234']] })],
  [
    'a user in the op',
    denied,
    () => op('create', { conv_id: '1235', user: elsewhere, user_id: elsewhere }),
  ],
  [
    'a company in the op',
    denied,
    () => op('create', { conv_id: '1235', company_id: '1235', project_id: '1' }),
  ],
  [
    'a process in other digits',
    denied,
    () => op('create', { conv_id: '\uff11\uff12\uff13\uff15' }),
  ],
  ['a process with a zero in front', denied, () => op('create', { conv_id: '01235' })],
  ['a process with a space', denied, () => op('create', { conv_id: ' 1235' })],
  [
    'a process that ends in the key of another',
    'error',
    () => op('create', { conv_id: '1234\u00001235' }),
  ],
  ['a list of processes', 'error', () => op('create', { conv_id: ['1234', '1235'] })],
  ['all processes', denied, () => op('show', { conv_id: '*' })],
  ['no process', 'error', () => op('show', { conv_id: null })],
  ['the process of every object', denied, () => op('show', { conv_id: 'constructor' })],
  ['a type of the command line', 'error', () => op('cancel')],
  ['an object of the command line', 'error', () => op('create', { obj: 'user' })],
  [
    'first his own, then of others',
    `ok ${denied} ok`,
    () => [op('create'), op('create', { conv_id: '1235' }), op('create')],
  ],
]

/** [what has happened to a user, the code of a create in 1234 then]. */
const gone: readonly (readonly [
  string,
  string,
  (on: Harness, user: string) => Promise<unknown>,
])[] = [
  ['the user removed', 'bad_signature', ({ server }, user) => server.engine.users.remove(user)],
  [
    'the right taken away',
    denied,
    ({ server }, user) => server.engine.processes.unshare(conv_id, user),
  ],
  [
    'the right narrowed',
    denied,
    ({ server }, user) => server.engine.processes.share(conv_id, user, ['show']),
  ],
  ['the secret changed', 'bad_signature', ({ server }, user) => server.engine.users.rotate(user)],
  [
    'removed, and added again with the same id',
    'bad_signature',
    async ({ server }, user) => {
      await server.engine.users.remove(user)
      await server.engine.users.add({ id: user })
      await server.engine.processes.share(conv_id, user)
    },
  ],
]

const rows: readonly Row[] = [
  ...sets.flatMap((set, at) =>
    cans.map(
      (can): Row => [
        `${can} with the rights ${set.join() || 'none'}`,
        set.includes(can) ? 'ok' : denied,
        async (on) => {
          // The one of the row before may have ended with it.
          await on.server.engine.create({ conv_id, ref: 'there', data: {} })
          return [op(can), as(on, user_of_set(at))]
        },
      ],
    ),
  ),
  ...by_one.map(([says, code, asked]): Row => [says, code, (on) => [asked(on.ids), {}]]),
  ...gone.map(
    ([says, code, happens]): Row => [
      says,
      code,
      async (on) => {
        const who = await on.newUser()
        await happens(on, who.user)
        return [op('create'), who]
      },
    ],
  ),
  [
    'the secret of another with more rights',
    'bad_signature',
    ({ secrets }) => [op('create'), { user: elsewhere, secret: secrets[user_of_set(7)] as string }],
  ],
  [
    'an id of 1235, by one who may do all in 1236',
    'not_found_task',
    (on) => [
      op('modify', { conv_id: '1236', ref: undefined, obj_id: on.ids['1235'] }),
      as(on, elsewhere),
    ],
  ],
  [
    'rights of a process that was removed and put again',
    denied,
    async (on) => {
      const { processes } = on.server.engine
      await processes.put(waiting(1240))
      await processes.share('1240', elsewhere)
      await processes.remove('1240')
      await processes.put(waiting(1240))
      return [op('create', { conv_id: '1240' }), as(on, elsewhere)]
    },
  ],
]

const waiting = (obj_id: number): object =>
  definition(obj_id, [
    node('start', 1, [{ type: 'go', to_node_id: 'wait' }]),
    node('wait', 0, [{ type: 'api_callback' }, { type: 'go', to_node_id: 'end' }]),
    node('end', 2, []),
  ])

async function open(): Promise<HostileRunner<Sent>> {
  const bugs: unknown[] = []
  const server = await openHttp({ onBug: (bug) => bugs.push(bug) })
  const { engine } = server
  const secrets: Record<string, string> = {}
  const ids: Record<string, string> = {}
  for (const other of [1235, 1236]) await engine.processes.put(waiting(other))
  for (const conv_id of ['1234', '1235', '1236']) {
    ids[conv_id] = String((await engine.create({ conv_id, ref: 'there', data: {} })).obj_id)
  }
  const addUser = async (id: string, conv_id: string, can: readonly Can[]): Promise<string> => {
    const { secret } = await engine.users.add({ id })
    secrets[id] = secret
    if (can.length > 0) await engine.processes.share(conv_id, id, can)
    return secret
  }
  for (const [at, set] of sets.entries()) await addUser(user_of_set(at), conv_id, set)
  await addUser(elsewhere, '1236', cans)
  let users = 30_000
  const on: Harness = {
    ...{ server, secrets, ids },
    async newUser() {
      const user = String(users++)
      return { user, secret: await addUser(user, conv_id, cans) }
    },
  }
  return {
    bugs,
    async answerTo(sent, at) {
      const [asked, how] = await sent(on)
      return codesOf(await server.send(bodyOf(asked), { sign: at % 2 ? 'hmac' : 'path', ...how }))
    },
    honest: async () => codesOf(await server.send(bodyOf(op('create')))),
    close: () => server.close(),
  }
}

const bodyOf = (asked: object): string => JSON.stringify({ ops: [asked].flat() })

/** Of all ops, or of the request where it is refused. */
function codesOf({ body }: { readonly body: string }): string {
  const { request_proc, ops } = JSON.parse(body) as {
    request_proc: string
    ops: { proc: string }[]
  }
  return request_proc === 'ok' ? ops.map(({ proc }) => proc).join(' ') : request_proc
}

export const hostile_access: HostileClass<Sent> = { name: 'access', rows, open }
