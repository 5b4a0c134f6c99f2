/** Drafts of the library: what is refused, with what, and what stays as it was. */
import './support/end-soon.ts'
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isFault } from '../src/core/faults.ts'
import { testClock } from '../src/core/test-clock.ts'
import type { ProcessDraft } from '../src/engine/api/draft-api.ts'
import type { Engine } from '../src/engine/api/engine-api.ts'
import { openEngine } from '../src/open.ts'
import { beginDrafts, edited_process } from './support/draft-steps.ts'
import { definition, node } from './support/http-server.ts'

const day_ms = 86_400_000
const go = (to_node_id: string): object => ({ type: 'go', to_node_id })
const end = (id: string): object => node(id, 2, [])

interface Setting extends AsyncDisposable {
  readonly engine: Engine
  readonly draft: ProcessDraft
  advance(ms: number): void
}

async function setting(): Promise<Setting> {
  const clock = testClock()
  const engine = await openEngine(':memory:', { clock })
  await beginDrafts(engine)
  const advance = (ms: number): void => void clock.advance(ms)
  const draft = engine.processes.draft(77)
  return { engine, draft, advance, [Symbol.asyncDispose]: () => engine.close() }
}

const own_secret = { direct_url: true, type_auth: 'basic', login: 'a', secret: 'hush' }
const many = Array.from({ length: 10_001 }, (_, at) => end(`n${at}`))
const long_code = {
  ...node('code', 0, [{ type: 'api_code', lang: 'js', src: '' }]),
  long: 'x'.repeat(5_300_000),
}

/** [what, the call, code, words of the message] */
const refused: readonly (readonly [string, (s: Setting) => Promise<unknown>, string, RegExp])[] = [
  ['a node that is not there', ({ draft }) => draft.removeNode('no'), 'node_not_found', /node/],
  [
    'a node of another process',
    async ({ engine, draft }) => {
      await engine.processes.put(definition(78, [node('only', 1, [go('e')]), end('e')]))
      return draft.removeNode('only')
    },
    'node_not_found',
    /node/,
  ],
  [
    'a node that the draft has removed',
    async ({ draft }) => {
      await draft.removeNode('end')
      return draft.removeNode('end')
    },
    'node_not_found',
    /node/,
  ],
  ['a node without an id', ({ draft }) => draft.putNode({ title: 'x' }), 'not_possible', /id of a/],
  ['no object', ({ draft }) => draft.putNode([1]), 'not_possible', /one JSON object/],
  ['cut off text', ({ draft }) => draft.put('{"scheme":{"nodes":['), 'format_error', /./],
  ['no nodes', ({ draft }) => draft.put({ title: 'x' }), 'not_possible', /nodes was expected/],
  [
    'two nodes of one id',
    ({ draft }) => draft.put(definition(77, [end('a'), end('a')])),
    'not_possible',
    /id of its own/,
  ],
  ['10,001 nodes', ({ draft }) => draft.put(definition(77, many)), 'not_possible', /10000 nodes/],
  ['over 5 MiB', ({ draft }) => draft.putNode(long_code), 'not_possible', /at most 5242880 bytes/],
  [
    'a literal secret of a webhook',
    ({ draft }) => draft.putNode({ ...node('start', 1, [go('wait')]), options: own_secret }),
    'not_possible',
    /no part of a draft/,
  ],
  [
    'the same in a whole definition',
    ({ draft }) => {
      const options = JSON.stringify(own_secret)
      return draft.put(definition(77, [{ ...node('start', 1, [go('e')]), options }, end('e')]))
    },
    'not_possible',
    /no part of a draft/,
  ],
  [
    'a user who is not there',
    ({ engine }) => engine.processes.draft(77, { user: 13009 }).putNode(end('x')),
    'user_not_found',
    /13009/,
  ],
  [
    'a process that is not there',
    ({ engine }) => engine.processes.draft(99).putNode(end('x')),
    'conv_not_found',
    /99/,
  ],
  ['a confirm without a draft', ({ draft }) => draft.confirm(), 'not_possible', /no draft/],
  ['a check without a draft', ({ draft }) => draft.check(), 'not_possible', /no draft/],
  [
    'a confirm of a discarded draft',
    async ({ draft }) => {
      await draft.putNode(end('x'))
      assert.equal(await draft.discard(), true)
      assert.equal(await draft.discard(), false)
      return draft.confirm()
    },
    'not_possible',
    /no draft/,
  ],
  [
    'a link to no node',
    async ({ draft }) => {
      await draft.putNode(node('start', 1, [go('nowhere')]))
      return draft.confirm()
    },
    'bad_definition',
    /"nowhere" is no node/,
  ],
  [
    'a removed node with tasks',
    async ({ draft }) => {
      await draft.removeNode('wait')
      await draft.putNode(node('start', 1, [go('end')]))
      return draft.confirm()
    },
    'tasks_in_node',
    /"wait" with 1 tasks/,
  ],
  [
    'a move to no node',
    async ({ draft }) => {
      await draft.removeNode('wait')
      await draft.putNode(node('start', 1, [go('end')]))
      return draft.confirm({ moves: { wait: 'nowhere' } })
    },
    'bad_definition',
    /move to "nowhere"/,
  ],
  [
    'a ninth draft of a process',
    async ({ engine }) => {
      for (let at = 0; at < 8; at++) {
        const { id: user } = await engine.users.add()
        await engine.processes.draft(77, { user }).putNode(end('x'))
      }
      return engine.processes.draft(77).putNode(end('x'))
    },
    'not_possible',
    /8 drafts already/,
  ],
  [
    'a 201st draft of a user',
    async ({ engine }) => {
      for (let id = 1000; id < 1201; id++) await engine.processes.put(definition(id, []))
      for (let id = 1000; id < 1200; id++) await engine.processes.draft(id).putNode(end('x'))
      return engine.processes.draft(1200).putNode(end('x'))
    },
    'not_possible',
    /200 drafts already/,
  ],
]

for (const [what, call, code, words] of refused) {
  test(`refused: ${what}`, async () => {
    await using given = await setting()
    const { engine } = given
    const before = await engine.processes.show(77)
    await assert.rejects(call(given), (error: unknown) => {
      assert.ok(isFault(error), String(error))
      assert.equal(error.code, code)
      assert.match(error.message, words)
      return true
    })
    assert.deepEqual(await engine.processes.show(77), before)
    assert.deepEqual((await engine.check()).breaches, [])
  })
}

test('nobody sees a draft before its confirm, and its tasks then go by the new graph', async () => {
  await using given = await setting()
  const { engine, draft } = given
  await draft.putNode(node('late', 2, []))
  await draft.putNode(node('wait', 0, [{ type: 'api_callback' }, go('late')]))
  assert.equal((await engine.processes.show(77)).version, 1)
  const { changes = [], is_rest_changed } = (await draft.show()) ?? {}
  assert.deepEqual(changes, [
    { node_id: 'wait', change: 'changed' },
    { node_id: 'late', change: 'created' },
  ])
  assert.equal(is_rest_changed, false)
  const { mistakes, warnings } = await draft.check()
  assert.deepEqual(mistakes, [])
  assert.deepEqual(
    warnings.map(({ node_id }) => node_id),
    ['wait', 'end'],
  )
  assert.equal((await draft.confirm({ dry_run: true })).version, 2)
  assert.equal((await engine.processes.show(77)).version, 1)
  assert.equal((await draft.confirm()).version, 2)
  await engine.modify({ conv_id: 77, ref: 'a', data: {} })
  const task = await engine.task({ conv_id: 77, ref: 'a' })
  assert.equal(task?.node_id, 'late')
  assert.equal(await draft.show(), undefined)
})

test('a draft that changes nothing confirms the version that is there', async () => {
  await using given = await setting()
  const { draft } = given
  await draft.put(edited_process)
  assert.equal((await draft.show())?.changes.length, 0)
  const { version, state } = await draft.confirm()
  assert.deepEqual([version, state], [1, 'unchanged'])
})

test('a whole definition takes the place of earlier edits', async () => {
  await using given = await setting()
  const { draft } = given
  await draft.putNode(end('x'))
  await draft.removeNode('end')
  const { nodes } = await draft.put({ ...edited_process, title: 'renamed' })
  assert.equal(nodes, 3)
  const shown = await draft.show()
  assert.deepEqual(shown?.changes, [])
  assert.equal(shown?.is_rest_changed, true)
  await draft.confirm()
  assert.equal((await given.engine.processes.show(77)).title, 'renamed')
})

test('tasks of removed nodes go where the confirm says', async () => {
  await using given = await setting()
  const { engine, draft } = given
  await draft.removeNode('wait')
  await draft.putNode(node('next', 0, [{ type: 'api_callback' }, go('end')]))
  await draft.putNode(node('start', 1, [go('next')]))
  await draft.confirm({ moves: { wait: 'next' } })
  await engine.modify({ conv_id: 77, ref: 'a', data: {} })
  assert.equal((await engine.task({ conv_id: 77, ref: 'a' }))?.node_id, 'end')
})

test('of two authors the second is refused by both versions, and rebases without a loss', async () => {
  await using given = await setting()
  const { engine, draft } = given
  const { processes } = engine
  await engine.users.remove(13000)
  await engine.users.add({ id: 13000, name: 'ann' })
  const other = processes.draft(77, { user: 13000 })
  const { version } = await draft.putNode(node('mine', 2, []))
  await other.putNode(node('hers', 2, []))
  assert.equal((await processes.drafts(77)).length, 2)
  await other.confirm()
  const words = `Version ${version} is based on 1; user 13000 (ann) confirmed 2 since`
  const outdated = { code: 'draft_outdated', message: words }
  await assert.rejects(draft.confirm(), outdated)
  await assert.rejects(draft.confirm({ dry_run: true }), outdated)
  await assert.rejects(draft.putNode(end('more')), outdated)
  assert.equal((await draft.show())?.is_outdated, true)
  assert.deepEqual((await draft.show())?.changes, [{ node_id: 'mine', change: 'created' }])
  assert.equal((await draft.rebase()).base, 2)
  await draft.confirm()
  const ids = (await processes.show(77)).nodes.map(({ id }) => id)
  assert.deepEqual(ids, ['start', 'wait', 'end', 'hers', 'mine'])
})

test('a rebase is refused where both have changed a node, and by an import without a user', async () => {
  await using given = await setting()
  const { engine, draft } = given
  const { version } = await draft.putNode({ ...end('end'), title: 'mine' })
  await engine.processes.put(
    definition(77, [
      node('start', 1, [go('wait')]),
      node('wait', 0, [{ type: 'api_callback' }, go('end')]),
      { ...end('end'), title: 'theirs' },
    ]),
  )
  const message = `Version ${version} is based on 1; 2 was confirmed since`
  await assert.rejects(draft.confirm(), { code: 'draft_outdated', message })
  await assert.rejects(draft.rebase(), {
    code: 'draft_outdated',
    message: /both change node "end"/,
  })
  assert.equal((await engine.processes.show(77)).nodes[2]?.title, 'theirs')
})

test('a secret that comes back as *** stays, and one that was never there is a mistake', async () => {
  await using given = await setting()
  const { engine, draft } = given
  const api = (url: string, api_secret_outer: string): object => {
    const call = { type: 'api', format: 'corezoid', method: 'POST', url, extra: {}, extra_type: {} }
    return { ...call, api_secret_outer, err_node_id: 'end' }
  }
  const calling = (url: string, secret: string): object =>
    node('start', 1, [api(url, secret), go('end')])
  await engine.processes.put(definition(79, [calling('https://a.example', 'key'), end('end')]))
  const other = engine.processes.draft(79)
  await other.putNode(calling('https://b.example', '***'))
  await other.confirm()
  const { definition_text } = await engine.processes.show(79)
  assert.ok(definition_text.includes('"key"') && definition_text.includes('b.example'))
  await draft.putNode({ ...calling('https://a.example', '***'), id: 'call', obj_type: 0 })
  const { mistakes } = await draft.check()
  assert.deepEqual(mistakes[0]?.node_id, 'call')
  assert.match(mistakes[0]?.text ?? '', /none is stored/)
})

test('a cycle that never waits is confirmed, and a task in it fails alone', async () => {
  await using given = await setting()
  const { engine, draft } = given
  await draft.putNode(node('start', 1, [go('a')]))
  await draft.putNode(node('a', 0, [go('b')]))
  await draft.putNode(node('b', 0, [go('a')]))
  await draft.confirm()
  await engine.create({ conv_id: 77, ref: 'round', data: {} })
  for (let at = 0; at < 1_000; at++) {
    if ((await engine.task({ conv_id: 77, ref: 'round' }))?.status === 'failed') break
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  assert.equal((await engine.task({ conv_id: 77, ref: 'round' }))?.status, 'failed')
  assert.equal((await engine.task({ conv_id: 77, ref: 'a' }))?.node_id, 'wait')
})

test('a draft is gone after a week without an edit, with its user, and with its process', async () => {
  await using given = await setting()
  const { engine, draft, advance } = given
  const { processes } = engine
  const counts = async (): Promise<unknown> => {
    const { breaches, counts } = await engine.check()
    assert.deepEqual(breaches, [])
    return [counts.draft, counts.draft_node]
  }
  await draft.putNode(end('x'))
  advance(6 * day_ms)
  await draft.putNode(end('y'))
  advance(6 * day_ms)
  assert.equal((await draft.show())?.changes.length, 2)
  advance(day_ms)
  assert.equal(await draft.show(), undefined)
  assert.deepEqual(await processes.drafts(77), [])
  await assert.rejects(draft.confirm(), { code: 'not_possible' })
  await processes.draft(77, { user: 13000 }).putNode(end('z'))
  assert.deepEqual(await counts(), [1, 1])
  await engine.users.remove(13000)
  assert.deepEqual(await counts(), [0, 0])
  await processes.put(definition(80, [node('start', 1, [go('end')]), end('end')]))
  await processes.draft(80).putNode(end('x'))
  await processes.remove(80)
  assert.deepEqual(await counts(), [0, 0])
})

test('edits of one draft at once are all there, and of three confirms at once one is', async () => {
  await using given = await setting()
  const { draft } = given
  await Promise.all(Array.from({ length: 50 }, (_, at) => draft.putNode(end(`n${at}`))))
  assert.equal((await draft.show())?.changes.length, 50)
  const confirms = await Promise.allSettled([draft.confirm(), draft.confirm(), draft.confirm()])
  assert.deepEqual(confirms.map(({ status }) => status).sort(), [
    'fulfilled',
    'rejected',
    'rejected',
  ])
})
