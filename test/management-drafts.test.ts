/** Ops on drafts over signed HTTP in both versions and over gRPC, as a tool sends them. */
import './support/end-soon.ts'
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ServedEngine } from '../src/engine/served-engine.ts'
import { openGrpc } from './support/grpc-server.ts'
import { definition, node, openHttp } from './support/http-server.ts'

type Json = Readonly<Record<string, unknown>>
type Entry = Record<string, unknown>
type Lists = { readonly list: readonly Entry[]; readonly version: number }

interface Setting extends AsyncDisposable {
  readonly engine: ServedEngine
  /** As the user `ann`, or another. */
  send(ops: readonly Json[], user?: string): Promise<Entry[]>
}

const [ann, bob, eve] = ['13001', '13002', '13003']

async function overHttp(version: 1 | 2): Promise<Setting> {
  const { engine, close, send } = await openHttp()
  const secrets = new Map<string, string>()
  for (const [id, name] of [
    [ann, 'ann'],
    [bob, 'bob'],
    [eve, 'eve'],
  ] as const) {
    secrets.set(id, (await engine.users.add({ id, name, administer: id === ann })).secret)
  }
  await engine.processes.share(1234, ann)
  await engine.processes.share(1234, bob, ['create', 'modify', 'show', 'edit'])
  return {
    engine,
    async send(ops, user = ann) {
      const secret = secrets.get(user) as string
      const { body } = await send(JSON.stringify({ ops }), { user, secret, version })
      const { ops: answers, ...request } = JSON.parse(body) as { ops: Entry[] }
      return answers ?? [request]
    },
    [Symbol.asyncDispose]: close,
  }
}

async function overGrpc(): Promise<Setting> {
  const server = await openGrpc()
  const { engine } = server
  await engine.users.add({ id: ann, name: 'ann', administer: true })
  await engine.processes.share(1234, ann)
  await engine.users.bind(ann, 'uri:conveyor:test')
  const client = server.connect()
  return {
    engine,
    async send(ops) {
      const request = { body_json: Buffer.from(JSON.stringify({ ops })), request_key: '' }
      const { answer_json } = await client.call('ApplyJson', request)
      return (JSON.parse(answer_json.toString()) as { ops: Entry[] }).ops
    },
    [Symbol.asyncDispose]: () => server.close(),
  }
}

const ways: readonly (readonly [string, () => Promise<Setting>])[] = [
  ['HTTP, version 1', () => overHttp(1)],
  ['HTTP, version 2', () => overHttp(2)],
  ['gRPC', overGrpc],
]

const procs = (answers: readonly Entry[]): unknown[] => answers.map(({ proc }) => proc)
const go = (to_node_id: unknown): Json => ({ type: 'go', to_node_id })

for (const [way, open] of ways) {
  test(`a script pulls, edits, mends, confirms, runs and discards: ${way}`, async () => {
    await using setting = await open()
    const { send } = setting
    const one = async (op: Json): Promise<Entry> => (await send([op]))[0] as Entry
    const of = { conv_id: 1234, version: 1_700_000_001 }
    const pulled = await one({ type: 'list', obj: 'conv', obj_id: 1234 })
    assert.deepEqual(pulled.commits, { version: 0, list: [] })
    assert.deepEqual(await one({ type: 'check', obj: 'obj_scheme', obj_id: 1234 }), {
      ...(way === 'HTTP, version 1' ? {} : { id: '' }),
      ...{ proc: 'ok', obj: 'obj_scheme', obj_id: 1234 },
    })
    const made = await send([
      { type: 'create', obj: 'node', ...of, obj_type: 0, title: 'more', id: 'mine' },
      { type: 'create', obj: 'node', ...of, obj_type: 2, title: 'out', id: 'other' },
    ])
    assert.deepEqual(procs(made), ['ok', 'ok'])
    const [more, out] = made.map(({ obj_id }) => obj_id)
    assert.match(String(more), /^[0-9a-f]{24}$/)
    assert.notEqual(more, out)
    assert.deepEqual([made[0]?.id, made[0]?.version], ['mine', of.version])
    const modified = await send([
      { type: 'modify', obj: 'conv_params', obj_id: 1234, params: [], ref_mask: true },
      { type: 'modify', obj: 'node', ...of, obj_id: 'wait', logics: [api_callback, go(more)] },
      {
        ...{ type: 'modify', obj: 'node', ...of, obj_id: more, position: [10, 20.5] },
        ...{ logics: JSON.stringify([go('nowhere')]), options: '{"a":1}' },
        semaphors: [{ type: 'time', value: 15, dimension: 'min', to_node_id: out }],
      },
      { type: 'modify', obj: 'node', ...of, obj_id: out, options: { save_task: true } },
      { type: 'delete', obj: 'node', ...of, obj_id: 'end' },
    ])
    assert.deepEqual(procs(modified), ['ok', 'ok', 'ok', 'ok', 'ok'])
    assert.match(
      String((await one({ type: 'check', obj: 'obj_scheme', obj_id: 1234 })).description),
      /uncommitted/,
    )
    const { commits, list } = (await one({ type: 'list', obj: 'conv', obj_id: 1234 })) as {
      commits: Lists
      list: Entry[]
    }
    assert.equal(commits.version, of.version)
    assert.deepEqual(
      commits.list.map(({ obj_id, status, nick }) => [obj_id, status, nick]),
      [
        ['wait', 'actived', 'ann'],
        ['end', 'deleted', 'ann'],
        [more, 'actived', 'ann'],
        [out, 'actived', 'ann'],
      ],
    )
    assert.deepEqual(
      list.map(({ obj_id }) => obj_id),
      ['start', 'wait', 'end'],
    )
    const confirm = { type: 'confirm', obj: 'commit', ...of }
    const failed = await one(confirm)
    assert.deepEqual([failed.proc, failed.description], ['error', '1'])
    const sentence = `Key 'to_node_id'. 'to_node_id "nowhere" is no node'`
    assert.deepEqual(failed.errors, { [String(more)]: [sentence] })
    const mended = { type: 'modify', obj: 'node', ...of, obj_id: more, logics: [go(out)] }
    assert.equal((await one(mended)).proc, 'ok')
    const { version: would, dry_run } = await one({ ...confirm, dry_run: true })
    assert.deepEqual([would, dry_run], [2, true])
    const confirmed = await one(confirm)
    assert.deepEqual([confirmed.proc, confirmed.obj_type, confirmed.version], ['ok', 'conv', 2])
    assert.ok(
      String((confirmed.warnings as Record<string, string[]>)[String(more)]).includes('dimension'),
    )
    const again = await one({ ...confirm, id: 'again' })
    assert.equal(again.description, `Version ${of.version} is confirmed`)
    const run = await send([
      { type: 'create', obj: 'task', conv_id: 1234, ref: 'a', data: {} },
      { type: 'modify', obj: 'task', conv_id: 1234, ref: 'a', data: { n: 1 } },
      { type: 'show', obj: 'task', conv_id: 1234, ref: 'a' },
    ])
    assert.equal(run[2]?.node_id, out)
    const obj_id = run[0]?.obj_id
    const history = await one({ type: 'list', obj: 'task_history', conv_id: 1234, obj_id })
    assert.deepEqual(
      (history.list as Entry[]).map(({ node_id }) => node_id),
      ['start', 'wait', 'wait', more, out],
    )
    const second = { ...of, version: of.version + 1 }
    const title = { type: 'modify', obj: 'node', ...second, obj_id: 'wait', title: 'x' }
    assert.equal((await one(title)).proc, 'ok')
    const shown = (await one({ type: 'show', obj: 'commit', ...second })) as unknown as Lists
    assert.deepEqual(
      shown.list.map(({ obj_id, title, status }) => [obj_id, title, status]),
      [['wait', 'x', 1]],
    )
    const gone = { type: 'delete', obj: 'commits', ...second }
    assert.deepEqual(procs(await send([gone, gone])), ['ok', 'ok'])
    const unknown = await one({ type: 'show', obj: 'commit', ...second })
    assert.equal(unknown.description, `Version ${second.version} does not exist`)
    const versions = (await one({
      type: 'list',
      obj: 'commits',
      conv_id: 1234,
    })) as unknown as Lists
    assert.deepEqual(
      versions.list.map(({ version, user_name }) => [version, user_name]),
      [
        [2, 'ann'],
        [1, ''],
      ],
    )
    const changed = (await one({
      type: 'show',
      obj: 'commit',
      obj_id: 1234,
      version: 2,
    })) as unknown as Lists
    assert.deepEqual(
      changed.list.map(({ obj_id, status }) => [obj_id, status]),
      [
        ['wait', 1],
        ['end', 3],
        [more, 1],
        [out, 1],
      ],
    )
    assert.deepEqual((await setting.engine.check()).breaches, [])
  })
}

const api_callback = { type: 'api_callback' }
const draft = { conv_id: 1234, version: 5 }
const create = { type: 'create', obj: 'node', ...draft, obj_type: 2, title: 'x' }
const modify = { type: 'modify', obj: 'node', ...draft, obj_id: 'wait' }
const confirm = { type: 'confirm', obj: 'commit', ...draft }
const missing = 'Object node with id'

/** [what, ops before, the op, of whom, its description] */
const refused: readonly (readonly [string, readonly Json[], Json, string, string | RegExp])[] = [
  ['a missing node', [], { ...modify, obj_id: 'no' }, ann, `${missing} no does not exist`],
  ['of another process', [], { ...modify, obj_id: 'only' }, ann, `${missing} only does not exist`],
  [
    'a missing node, to delete',
    [],
    { ...modify, type: 'delete', obj_id: 'no' },
    ann,
    /no does not/,
  ],
  [
    'a deleted node',
    [{ ...modify, type: 'delete', obj_id: 'end' }],
    { ...modify, obj_id: 'end' },
    ann,
    `${missing} end does not exist`,
  ],
  ['no version', [], { ...modify, version: undefined }, ann, "Key 'version' is required"],
  ['a version that is no number', [], { ...modify, version: 'x' }, ann, /version: a whole number/],
  ['no obj_type', [], { ...create, obj_type: undefined }, ann, "Key 'obj_type' is required"],
  ['a kind of node that is none', [], { ...create, obj_type: 5 }, ann, /one of 0 1 2 3 4/],
  ['logics that are no list', [], { ...modify, logics: 'x' }, ann, /logics: an array of objects/],
  ['options that are no object', [], { ...modify, options: '[1' }, ann, /options: an object/],
  ['a place that is none', [], { ...modify, position: [1] }, ann, /position: two numbers/],
  ['a long title', [], { ...create, title: 'x'.repeat(256) }, ann, /title: a text of at most 255/],
  [
    'the secret of a webhook',
    [],
    { ...modify, obj_id: 'start', options: { type_auth: 'basic', login: 'a', secret: 'hush' } },
    ann,
    /no part of a draft/,
  ],
  ['without the right', [], create, eve, 'user: 13003, conv_id: 1234'],
  ['a confirm without the right', [create], confirm, eve, 'user: 13003, conv_id: 1234'],
  ['a confirm of nothing', [], confirm, ann, 'Version 5 does not exist'],
  ["another's version", [create], create, bob, "Version 5 is another user's"],
  ["a confirm of another's", [create], confirm, bob, "Version 5 is another user's"],
  [
    "a look at another's",
    [create],
    { ...confirm, type: 'show' },
    bob,
    "Version 5 is another user's",
  ],
  [
    "a delete of another's",
    [create],
    { ...confirm, type: 'delete' },
    bob,
    "Version 5 is another user's",
  ],
  ['a second version of one user', [create], { ...create, version: 6 }, ann, 'Version 5 is open'],
  [
    'a confirmed version',
    [create, confirm],
    { ...create, title: 'y' },
    ann,
    'Version 5 is confirmed',
  ],
  [
    'a version confirmed meanwhile',
    [create, { type: 'modify', obj: 'conv', obj_id: 1234, title: 'new' }],
    modify,
    ann,
    'Version 5 is based on 1; user 13001 (ann) confirmed 2 since',
  ],
  [
    'a confirm of what was confirmed meanwhile',
    [create, { type: 'modify', obj: 'conv', obj_id: 1234, title: 'new' }],
    confirm,
    ann,
    'Version 5 is based on 1; user 13001 (ann) confirmed 2 since',
  ],
  ['moves that are none', [create], { ...confirm, move: [1] }, ann, /move: an object of node ids/],
  [
    'parameters that are none',
    [],
    { type: 'modify', obj: 'conv_params', obj_id: 1234, params: [1] },
    ann,
    /params: an array of objects/,
  ],
]

for (const [what, before, op, user, description] of refused) {
  test(`refused: ${what}`, async () => {
    await using setting = await overHttp(2)
    const { engine, send } = setting
    await engine.processes.put(definition(7, [node('only', 1, [go('end')]), node('end', 2, [])]))
    for (const earlier of before) assert.deepEqual(procs(await send([earlier])), ['ok'])
    const drafts = await engine.processes.drafts(1234)
    const [answer] = await send([op], user)
    if (typeof description === 'string') assert.equal(answer?.description, description)
    else assert.match(String(answer?.description), description)
    assert.deepEqual(await engine.processes.drafts(1234), drafts)
    assert.equal((await engine.processes.show(7)).version, 1)
  })
}

test('a confirm that removes a node with tasks says how many, and takes where they go', async () => {
  await using setting = await overHttp(2)
  const { send } = setting
  await send([{ type: 'create', obj: 'task', conv_id: 1234, ref: 'a', data: {} }], bob)
  await send([
    { ...modify, type: 'delete' },
    { ...modify, obj_id: 'start', logics: [go('end')] },
  ])
  const [kept] = await send([confirm])
  assert.deepEqual(kept?.errors, { wait: [`Key 'logics'. 'node "wait" with 1 tasks'`] })
  const [wrong] = await send([{ ...confirm, move: { wait: 'no' } }])
  assert.deepEqual(wrong?.errors, { 1234: [`Key 'logics'. 'move to "no": no such node'`] })
  assert.equal((await send([{ ...confirm, move: { wait: 'end' } }]))[0]?.proc, 'ok')
})

test('everybody sees that others edit, and what only of his own; administrators may delete it', async () => {
  await using setting = await overHttp(2)
  const { send } = setting
  await send([create], bob)
  const list = { type: 'list', obj: 'conv', obj_id: 1234 }
  const [mine] = await send([list], bob)
  assert.equal((mine as { commits: Lists }).commits.list.length, 1)
  assert.equal(mine?.others, undefined)
  const [answer] = await send([list])
  assert.deepEqual(answer?.commits, { version: 0, list: [] })
  const [other] = (answer as { others: Entry[] }).others
  assert.deepEqual(
    [other?.version, other?.user_id, other?.user_name, other?.nodes],
    [5, 13002, 'bob', 1],
  )
  const [folder] = await send([{ type: 'list', obj: 'folder', obj_id: 0 }], bob)
  const [row] = (folder as { list: Entry[] }).list
  assert.deepEqual([row?.version, row?.is_deployed], [5, false])
  const gone = { ...confirm, type: 'delete', obj: 'commits' }
  assert.equal((await send([{ ...confirm, type: 'show' }]))[0]?.proc, 'ok')
  assert.equal((await send([gone]))[0]?.proc, 'ok')
  assert.equal((await send([confirm], bob))[0]?.description, 'Version 5 does not exist')
})

test('the parameters are a version of their own without a draft, and part of one with it', async () => {
  await using setting = await overHttp(2)
  const { engine, send } = setting
  const params = [{ name: 'amount', type: 'number', flags: ['required', 'input'] }]
  const op = { type: 'modify', obj: 'conv_params', obj_id: 1234, params }
  assert.equal((await send([op]))[0]?.version, 2)
  assert.equal((await engine.processes.show(1234)).version, 2)
  assert.equal((await send([create, { ...op, params: [] }]))[1]?.version, 5)
  const [listed] = await send([{ type: 'list', obj: 'conv_params', obj_id: 1234 }])
  assert.deepEqual(listed?.params, params)
  assert.equal((await send([confirm]))[0]?.version, 3)
})

test('a new process without nodes is pushed as tools do, and takes tasks once it is confirmed', async () => {
  await using setting = await overHttp(2)
  const { engine, send } = setting
  const head = { title: 'pushed', conv_type: 'process', create_mode: 'without_nodes' }
  const [{ obj_id: conv_id } = {}] = await send([{ type: 'create', obj: 'conv', ...head }])
  const of = { conv_id, version: 1_700_000_009 }
  const list = { type: 'list', obj: 'conv', obj_id: conv_id }
  const [empty] = await send([list])
  assert.deepEqual([empty?.list, empty?.last_confirmed_version], [[], 0])
  const made = await send([
    { type: 'create', obj: 'node', ...of, obj_type: 1, title: 'Start', id: 'start' },
    { type: 'create', obj: 'node', ...of, obj_type: 2, title: 'End', id: 'end' },
  ])
  const [start, end] = made.map(({ obj_id }) => obj_id)
  const task = { type: 'create', obj: 'task', conv_id, ref: 'a', data: {} }
  assert.equal((await send([task]))[0]?.proc, 'conveyor_is_not_active')
  const unfinished = { type: 'confirm', obj: 'commit', ...of }
  const [failed] = await send([unfinished])
  assert.deepEqual(failed?.errors, { [String(start)]: [`Key 'logics'. 'the start leads nowhere'`] })
  await send([{ type: 'modify', obj: 'node', ...of, obj_id: start, logics: [go(end)] }])
  await send([{ type: 'modify', obj: 'node', ...of, obj_id: end, options: { save_task: true } }])
  assert.equal((await send([unfinished]))[0]?.version, 2)
  const [pushed] = await send([{ ...list, id: 'after' }])
  assert.deepEqual([pushed?.last_confirmed_version, pushed?.commits], [2, { version: 0, list: [] }])
  assert.equal((await send([{ ...task, ref: 'b' }]))[0]?.proc, 'ok')
  assert.equal((await engine.task({ conv_id: String(conv_id), ref: 'b' }))?.node_id, end)
})

test('one request creates, links and confirms, and its repeat is answered without a second version', async () => {
  await using served = await openHttp().then((http) => ({
    ...http,
    [Symbol.asyncDispose]: http.close,
  }))
  const { secret } = await served.engine.users.add({ id: ann, administer: true })
  const body = JSON.stringify({ ops: [create, { ...modify, title: 'y' }, confirm] })
  const signing = {
    user: ann,
    secret,
    version: 2,
    timestamp: String(Math.floor(served.engine.clock.now_ms() / 1000)),
  } as const
  const first = await served.send(body, signing)
  assert.deepEqual(procs((JSON.parse(first.body) as { ops: Entry[] }).ops), ['ok', 'ok', 'ok'])
  assert.equal((await served.send(body, signing)).body, first.body)
  assert.equal((await served.engine.processes.show(1234)).version, 2)
})

test('a refused confirm is tried again by the same signed bytes once its mistake is mended', async () => {
  const http = await openHttp()
  await using served = { ...http, [Symbol.asyncDispose]: http.close }
  const { secret } = await served.engine.users.add({ id: ann, administer: true })
  const timestamp = String(Math.floor(served.engine.clock.now_ms() / 1000))
  const post = async (op: Json): Promise<Entry | undefined> => {
    const body = JSON.stringify({ ops: [op] })
    const answer = await served.send(body, { user: ann, secret, version: 2, timestamp })
    return (JSON.parse(answer.body) as { ops: Entry[] }).ops[0]
  }
  await post({ ...modify, logics: [go('no')] })
  assert.equal((await post(confirm))?.description, '1')
  await post({ ...modify, logics: [go('end')] })
  assert.equal((await post(confirm))?.version, 2)
})

test('long warnings of many nodes leave an answer that is kept, and its repeat is the same', async () => {
  const http = await openHttp()
  await using served = { ...http, [Symbol.asyncDispose]: http.close }
  const { secret } = await served.engine.users.add({ id: ann, administer: true })
  const title = 'ж'.repeat(255)
  const extra = { [`{{${'ж'.repeat(200)}`]: 'x' }
  const logics = [{ type: 'set_param', extra, extra_type: {}, err_node_id: 'end' }, go('end')]
  const ops = Array.from({ length: 200 }, () => ({ ...create, obj_type: 0, title, logics }))
  const timestamp = String(Math.floor(served.engine.clock.now_ms() / 1000))
  const signing = { user: ann, secret, version: 2, timestamp } as const
  await served.send(JSON.stringify({ ops }), signing)
  const body = JSON.stringify({ ops: [{ ...confirm, id: 'ж'.repeat(10_000) }] })
  const first = await served.send(body, signing)
  const [answer] = (JSON.parse(first.body) as { ops: Entry[] }).ops
  assert.equal(answer?.version, 2)
  const warnings = answer?.warnings as Record<string, string[]>
  assert.match(String(warnings['1234']?.at(-1)), /^and [0-9]+ more$/)
  assert.equal((await served.send(body, signing)).body, first.body)
})

test('a request confirms two drafts that it edits, and no more', async () => {
  await using setting = await overHttp(2)
  const pair = (version: number): Json[] => [
    { ...create, version },
    { ...confirm, version },
  ]
  const answers = await setting.send([...pair(5), ...pair(6), ...pair(7)])
  assert.deepEqual(procs(answers), ['ok', 'ok', 'ok', 'ok', 'ok', 'error'])
  assert.equal((await setting.engine.processes.show(1234)).version, 3)
  assert.equal((await setting.send([{ ...confirm, version: 7 }]))[0]?.version, 4)
})

test('of a thousand mistakes the answer has the number and a hundred of them', async () => {
  await using setting = await overHttp(2)
  const { send } = setting
  const ops = Array.from({ length: 999 }, () => ({ ...create, obj_type: 0, logics: [go('no')] }))
  const made = await send(ops)
  const nodes = made.map(({ obj_id }) => obj_id)
  const logics = nodes.map((id) => ({
    ...go(id),
    ...{ type: 'go_if_const', conditions: [{ param: 'a', const: '1', fun: 'eq', cast: 'string' }] },
  }))
  await send([{ ...modify, obj_id: 'start', logics: [...logics, go('wait')] }])
  const [answer] = await send([confirm])
  assert.equal(answer?.description, '999')
  const errors = answer?.errors as Record<string, string[]>
  assert.equal(Object.keys(errors).length, 101)
  assert.deepEqual(errors['1234'], ['and 899 more'])
})
