/**
 * Parsing of arguments: what is accepted, what is a usage fault, and the help. No file is touched.
 */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { failureOf } from '../src/cli/exit-codes.ts'
import type { Env } from '../src/cli/io.ts'
import { parseWords } from '../src/cli/parse.ts'
import { programOf, shellWord } from '../src/cli/program.ts'
import { listenAddressOf } from '../src/cli/serve/servers.ts'
import { table } from '../src/cli/text.ts'
import { durationMs } from '../src/cli/verb.ts'
import { verbs } from '../src/cli/verb-table.ts'
import { limitNames } from '../src/core/limits.ts'
import { version } from '../src/core/version.ts'
import { run } from './support/cli-run.ts'
import { top } from './support/package-folder.ts'

// biome-ignore format: a table
const taken: [argv: string, env: Env, verb: string, words: string[], flags: object][] = [
  ['user add',                          {}, 'user add',       [], {}],
  ['user add --id 7 --name=Ann',        {}, 'user add',       [], { id: '7', name: 'Ann' }],
  ['user rotate 7 --grace 24h --json',  {}, 'user rotate',    ['7'], { grace: '24h', json: true }],
  ['process import f --move a=b --move c=d', {}, 'process import', ['f'], { move: ['a=b', 'c=d'] }],
  ['process import -',                  {}, 'process import', ['-'], {}],
  ['process import a b - --map 1=2',    {}, 'process import', ['a', 'b', '-'], { map: ['1=2'] }],
  ['process import',                    {}, 'usage', [], {}],
  ['task show 1 order-1',               {}, 'task show',      ['1', 'order-1'], {}],
  ['task show 1 --ref -- -x',           {}, 'usage', [], {}],
  ['task show 1 --ref=-x',              {}, 'task show',      ['1'], { ref: '-x' }],
  ['serve --ops-max 5',                 {}, 'serve',          [], { 'ops-max': '5' }],
  ['check',  { CONVEYOR_DB: 'x.lmdb' },     'check',          [], { db: 'x.lmdb' }],
  ['check --db y', { CONVEYOR_DB: 'x' },    'check',          [], { db: 'y' }],
  ['check',  { CONVEYOR_JSON: '1' },        'check',          [], { json: true }],
  ['check',  { CONVEYOR_JSON: '0' },        'check',          [], {}],
  ['check',  { CONVEYOR_JSON: '' },         'check',          [], {}],
  ['check',  { CONVEYOR_HTTP: 'off' },      'check',          [], {}],
  ['serve',  { CONVEYOR_HTTP: 'off', CONVEYOR_WINDOW: '9' }, 'serve', [], { http: 'off', window: '9' }],
  ['check',  { CONVEYOR_JSON: 'perhaps' },  'usage', [], {}],
  ['process import f', { CONVEYOR_MOVE: 'a=b' }, 'process import', ['f'], {}],
]

for (const [argv, env, verb, words, flags] of taken) {
  test(`parse: ${argv} ${JSON.stringify(env)}`, () => {
    if (verb === 'usage') {
      assert.throws(() => parseWords(argv.split(' '), env, verbs), { code: 'usage' })
      return
    }
    const parsed = parseWords(argv.split(' '), env, verbs)
    assert.ok(parsed.kind === 'run')
    assert.equal(parsed.given.verb.name, verb)
    assert.deepEqual(parsed.given.words, words)
    assert.deepEqual(parsed.given.flags, flags)
  })
}

// biome-ignore format: a table
const refused: [argv: string[], says: RegExp][] = [
  [[],                                     /name a verb/],
  [['fly'],                                /no such verb: fly/],
  [['user'],                               /which user verb: add, list/],
  [['user', 'bind', '1', 'x'],             /opens with uri:, dns:, cn: or sha256:/],
  [['user', 'bind', 'dns:x'],              /bind --all NAME/],
  [['user', 'bind', '--all', '1', 'dns:x'], /bind --all NAME/],
  [['user', 'bind', 'ann', 'dns:x'],       /1 to 16 digits/],
  [['user', 'unbind', 'x'],                /opens with uri:, dns:, cn: or sha256:/],
  [['certs'],                              /which certs verb: init, client/],
  [['certs', 'init'],                      /DIR is missing/],
  [['certs', 'client', 'd'],               /NAME is missing/],
  [['certs', 'init', 'd', '--days', '0'],  /--days takes/],
  [['cure'],                               /no such verb: cure/],
  [['doctor', 'x'],                        /doctor takes no words, not 1/],
  [['help', 'fly'],                        /no such verb: fly/],
  [['--db', 'x', 'check'],                 /the verb comes first/],
  [['serve', '--grpc', 'h:1'],             /--grpc needs --tls DIR.*certs init/],
  [['serve', '--grpc', '9090', '--tls', 'd'], /--grpc takes HOST:PORT/],
  [['serve', 'x'],                         /serve takes no words/],
  [['serve', '--http', '8080'],            /HOST:PORT/],
  [['serve', '--http', 'off', '--demo'],   /--demo needs --http/],
  [['serve', '--operator', '8081'],        /--operator takes HOST:PORT/],
  [['serve', '--ops-max', 'many'],         /--ops-max takes a whole number/],
  [['serve', '--window', '-1'],            /ambiguous/],
  [['check', '--db'],                      /argument missing/],
  [['check', '--db='],                     /--db needs a value/],
  [['check', '--json=yes'],                /does not take an argument/],
  [['user', 'rotate'],                     /ID is missing/],
  [['user', 'rotate', '1', '2'],           /takes one word, not 2/],
  [['user', 'rotate', '1', '--grace', '1'], /such as 24h/],
  [['user', 'add', '--id', 'ann'],         /1 to 16 digits/],
  [['process', 'import', '/no/such/file'], /cannot read .* there is no such file/],
  [['process', 'import', '-', '--move', 'x'], /OLD=NEW/],
  [['process', 'share', '1', '2', '--can', 'fly'], /create,modify,show/],
  [['process', 'show', '1', '--png'],      /no such flag --png/],
  [['process', 'show', '1', '--mermaid', '--json'], /not both/],
  [['task', 'show', '1'],                  /name the task/],
  [['task', 'show', '1', 'a', '--ref', 'a'], /name the task once/],
  [['task', 'show', '1', '--obj-id', 'a'], /24 hex digits/],
  [['task', 'modify', '1', 'a', '--data', '[1]'], /--data is not a JSON object/],
  [['task', 'create', '1', '--data', '{a'], /--data is not JSON: .* line 1 column 2/],
  [['task', 'create', '1', '--file', 'f', '--ref', 'x'], /leave out --ref/],
  [['task', 'list', '1', '--status', 'odd'], /--status is one of/],
  [['task', 'list', '1', '--limit', 'x'],  /--limit is a whole number/],
  [['send', '--user', '1'],                /--url takes/],
  [['send', '--url', 'ftp://x', '--user', '1'], /--url takes/],
  [['send', '--url', 'http://x'],          /--user takes/],
  [['send', '--url', 'http://x', '--user', '1'], /no secret/],
  [['sign', '--url', 'http://x', '--user', '1', '--secret', 's3cret'], /never an argument/],
  [['sign', '--url', 'http://x', '--user', '1', '--secret=s3cret'], /never an argument/],
]

for (const [argv, says] of refused) {
  test(`usage: conveyor ${argv.join(' ')}`, async () => {
    const { exit, out, err } = await run(argv, { env: { CONVEYOR_DB: '/no/such/folder/x.lmdb' } })
    assert.equal(exit, 2, err)
    assert.equal(out, '')
    assert.match(err, says)
    assert.equal(err.split('\n').length, 2, 'one line')
    assert.doesNotMatch(err, /s3cret/)
  })
}

/** Each command that a string of the source quotes; what is filled in is `x`. */
const quoted = readdirSync(join(top, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts') && name !== 'cli/program.ts')
  .flatMap((name) => {
    const lines = readFileSync(join(top, 'src', name), 'utf8').split('\n')
    return lines.flatMap((line, at) => {
      const found = line.matchAll(/npx conveyor ((?:[^`'"\\\n$]|\$\{[^}]*\})+)/g)
      return [...found].map(([, command = '']) => [`${name}:${at + 1}`, command.trim()] as const)
    })
  })

test('each command that a message quotes is one that the verbs take', () => {
  assert.ok(quoted.length >= 8, `only ${quoted.length} found`)
  for (const [place, command] of quoted) {
    const filled = command.replace(/\$\{[^}]*\}/g, 'x').replace(/^(VERB|x)\b.*$/, '--help')
    assert.doesNotThrow(() => parseWords(filled.split(/ +/), {}, verbs), `${place}: ${command}`)
  }
})

test('messages name the program by the words that started it', async () => {
  const { err } = await run(['fly'], { program: 'npm run -s conveyor --' })
  assert.match(err, /see `npm run -s conveyor -- --help`/)
  const { out } = await run(['user', '--help'], { program: 'node /opt/c.mjs' })
  assert.match(out, /^node \/opt\/c.mjs user …\n/)
  assert.doesNotMatch(out, /npx conveyor/)
})

/** [the script, npm's variables, the words] */
// biome-ignore format: a table
const programs: readonly (readonly [string, Record<string, string>, string])[] = [
  ['/home/a/conveyor/bin/conveyor.ts', {}, 'npm run -s conveyor --'],
  ['/home/a/conveyor/bin/conveyor.ts', { npm_lifecycle_event: 'conveyor', npm_command: 'run-script' }, 'npm run -s conveyor --'],
  ['/srv/app/node_modules/.bin/conveyor', { npm_lifecycle_event: 'npx', npm_command: 'exec' }, 'npx conveyor'],
  ['/srv/app/node_modules/.bin/conveyor', {}, 'npx conveyor'],
  ['/usr/local/bin/conveyor', {}, 'conveyor'],
  ['/home/a/.npm/_npx/1f/node_modules/.bin/conveyor-engine', { npm_lifecycle_event: 'npx', npm_command: 'exec' }, 'npx conveyor-engine'],
  ['C:\\app\\node_modules\\conveyor-engine\\dist\\bin\\conveyor-engine.js', {}, 'npx conveyor-engine'],
  ['C:\\app\\node_modules\\conveyor-engine\\dist\\bin\\conveyor.js', {}, 'npx conveyor'],
  ['/opt/conveyor.mjs', {}, 'node /opt/conveyor.mjs'],
  ['/opt/my tools/conveyor.mjs', {}, "node '/opt/my tools/conveyor.mjs'"],
]

for (const [script, env, words] of programs) {
  test(`${script} is run as ${words}`, () => assert.equal(programOf(script, env), words))
}

test('a usage fault is a JSON line with --json', async () => {
  const { exit, err } = await run(['check', '--json', '--odd'])
  assert.equal(exit, 2)
  const line = JSON.parse(err) as Record<string, unknown>
  assert.equal(line.error, 'usage')
  assert.match(String(line.description), /--odd/)
})

test('help lists every verb, and the help of a verb each of its flags', async () => {
  const all = await run(['--help'])
  assert.equal(all.exit, 0)
  for (const verb of verbs) {
    assert.ok(all.out.includes(`${verb.name} `), verb.name)
    const { out, exit } = await run([...verb.name.split(' '), '--help'])
    assert.equal(exit, 0)
    assert.ok(out.startsWith(`conveyor ${verb.name}`), verb.name)
    for (const flag of verb.flags) assert.ok(out.includes(`--${flag.name}`), flag.name)
  }
})

test('help of a group, by either form', async () => {
  const { out } = await run(['user', '--help'])
  assert.match(out, /user rotate/)
  assert.doesNotMatch(out, /task list/)
  assert.equal((await run(['help', 'user'])).out, out)
  assert.equal((await run(['help', 'task', 'list'])).out, (await run(['task', 'list', '-h'])).out)
})

test('each limit is a flag of serve, and no flag takes a secret', () => {
  const serve = verbs.find((verb) => verb.name === 'serve')
  const names = new Set(serve?.flags.map((flag) => flag.name))
  for (const name of limitNames) assert.ok(names.has(name.replaceAll('_', '-')), name)
  for (const verb of verbs) {
    for (const flag of verb.flags) assert.doesNotMatch(flag.name, /^(secret|password|key)$/)
  }
})

test('verb names and the flags of a verb are there once', () => {
  assert.equal(new Set(verbs.map((verb) => verb.name)).size, verbs.length)
  for (const verb of verbs) {
    assert.equal(new Set(verb.flags.map((flag) => flag.name)).size, verb.flags.length, verb.name)
  }
})

test('--version', async () => {
  assert.deepEqual(await run(['--version']), { exit: 0, out: `${version}\n`, err: '' })
})

// biome-ignore format: a table
const durations: [string, number | undefined][] = [
  ['90s', 90_000], ['15m', 900_000], ['24h', 86_400_000], ['7d', 604_800_000], ['0s', 0],
  ['24', undefined], ['h', undefined], ['1.5h', undefined], ['-1h', undefined], ['1w', undefined],
]
for (const [given, ms] of durations) {
  test(`a time: ${given}`, () => {
    if (ms === undefined) assert.throws(() => durationMs(given), { code: 'usage' })
    else assert.equal(durationMs(given), ms)
  })
}

// biome-ignore format: a table
const places: [string, { host: string; port: number } | undefined | 'usage'][] = [
  ['127.0.0.1:8080', { host: '127.0.0.1', port: 8080 }],
  ['[::1]:0',        { host: '::1', port: 0 }],
  ['localhost:1',    { host: 'localhost', port: 1 }],
  ['off',            undefined],
  ['::1:80', 'usage'], ['host', 'usage'], [':80', 'usage'], ['h:70000', 'usage'], ['h:', 'usage'],
]
for (const [given, place] of places) {
  test(`--http ${given}`, () => {
    if (place === 'usage') assert.throws(() => listenAddressOf('http', given), { code: 'usage' })
    else assert.deepEqual(listenAddressOf('http', given), place)
  })
}

test('a word that a message quotes for a shell runs nothing', () => {
  const rows = [
    ['/srv/a.lmdb', '/srv/a.lmdb'],
    ['$(rm -r x)', "'$(rm -r x)'"],
    ["it's; `x`", `'it'\\''s; \`x\`'`],
    ['', "''"],
  ]
  for (const [given = '', word] of rows) assert.equal(shellWord(given), word)
})

test('tables are aligned, and text from callers moves no cursor', () => {
  const rows = [
    ['x\u001b[2Jy', '1'],
    ['\u202ecod\u2066.\u2028z', '\u009b'],
    ['zz', 'é'],
  ]
  const page = 'A         LONG\nx·[2Jy    1\n·cod·.·z  ·\nzz        é\n'
  assert.equal(table(['A', 'LONG'], rows), page)
  assert.equal(table(['A'], []), '')
})

// biome-ignore format: a table
const failures: [error: object, exit: number, code: string][] = [
  [Object.assign(new Error('x'), { code: 'file_held' }),      3, 'file_held'],
  [Object.assign(new Error('x'), { code: 'store_failed' }),   3, 'store_failed'],
  [Object.assign(new Error('x'), { code: 'overloaded' }),     3, 'overloaded'],
  [Object.assign(new Error('x'), { code: 'bad_signature' }),  4, 'bad_signature'],
  [Object.assign(new Error('x'), { code: 'user_exists' }),    1, 'user_exists'],
  [Object.assign(new Error('x'), { code: 'bad_definition' }), 1, 'bad_definition'],
  [Object.assign(new Error('x'), { code: 'EACCES', syscall: 'open' }), 3, 'EACCES'],
  [new TypeError('x'),                                        3, 'internal_error'],
]
for (const [error, exit, code] of failures) {
  test(`a failure of ${code} exits ${exit}`, () => {
    const failure = failureOf(error)
    assert.deepEqual([failure.exit, failure.code], [exit, code])
  })
}
