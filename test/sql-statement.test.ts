/** Statements of `db_call`: what becomes a parameter, and where no template can be. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { JsonObject } from '../src/core/model.ts'
import type { SqlDialect } from '../src/process/logic.ts'
import { dbCallKinds } from '../src/process/logics/db-call.ts'
import { contextOf, notes } from './support/logic-context.ts'

const databases = new Map<string, SqlDialect>([
  ['7', 'postgres'],
  ['shop', 'mysql'],
])
const data = {
  id: 7,
  name: "O'Brien",
  sql: "x'; drop table t; --",
  yes: true,
  nil: null,
  list: [1, 'a'],
  exact: '1.10',
}

function compiled(definition: JsonObject, is_checked = true) {
  const report = notes()
  const logic = dbCallKinds(databases).kind(is_checked).compile(definition, report)
  return { logic, ...report }
}

/** The statement and its values, or the first mistake. */
function boundIn(instance_id: string | number, query: string, more: JsonObject = {}): string {
  const { logic, mistakes } = compiled({ instance_id, query, ...more })
  if (mistakes[0] !== undefined) return mistakes[0]
  const made = logic.job?.order(contextOf(data))
  if (made === undefined) return 'no order'
  if ('command' in made) return made.command === 'fail' ? `${made.tag}: ${made.description}` : '?'
  return made.job === 'db' ? `${made.text} ← ${JSON.stringify(made.values)}` : made.job
}

/** [query, PostgreSQL, MySQL]; one result stands for both, with `$1` for `?`. */
const bound: readonly (readonly [query: string, postgres: string, mysql?: string])[] = [
  ['select 1', 'select 1 ← []'],
  ['select 1;', 'select 1; ← []'],
  ['select 1; -- the end\n;', 'select 1; -- the end\n; ← []'],
  ['select * from t where id = {{id}}', 'select * from t where id = $1 ← ["7"]'],
  ["select * from t where n = '{{name}}'", `select * from t where n = $1 ← ["O'Brien"]`],
  ["select '{{sql}}'", `select $1 ← ["x'; drop table t; --"]`],
  ['select {{sql}}', `select $1 ← ["x'; drop table t; --"]`],
  ["where_ ('a{{id}}b{{yes}}c')", 'where_ ($1) ← ["a7btruec"]'],
  [
    "select * from t where n like '%{{name}}''s%'",
    `select * from t where n like $1 ← ["%O'Brien's%"]`,
  ],
  ["select '' , '{{none}}', {{none}}, {{nil}}", `select '' , $1, $2, $3 ← ["",null,null]`],
  ['select {{yes}}', 'select $1 ← ["true"]', 'select ? ← ["1"]'],
  ['select {{list}}, {{exact}}', 'select $1, $2 ← ["[1,\\"a\\"]","1.10"]'],
  [
    'insert into s.t (a, b) values ({{id}}, {{name}})',
    `insert into s.t (a, b) values ($1, $2) ← ["7","O'Brien"]`,
  ],
  [
    'update t set a = {{id}}, b={{id}} where c in ({{id}},{{id}})',
    'update t set a = $1, b=$2 where c in ($3,$4) ← ["7","7","7","7"]',
  ],
  [
    'select * from f({{id}}) limit {{id}} offset {{id}}',
    'select * from f($1) limit $2 offset $3 ← ["7","7","7"]',
  ],
  [
    'select a from t join u on u.id = {{id}} order by a',
    'select a from t join u on u.id = $1 order by a ← ["7"]',
  ],
  [
    'select case when a={{id}} then {{id}} else -{{id}} end',
    'select case when a=$1 then $2 else -$3 end ← ["7","7","7"]',
  ],
  ['select substring(a from {{id}} for {{id}})', 'select substring(a from $1 for $2) ← ["7","7"]'],
  ['select a is distinct from {{id}}', 'select a is distinct from $1 ← ["7"]'],
  [
    'select {{id}}::int, a[{{id}}], b @> {{list}}',
    'select $1::int, a[$2], b @> $3 ← ["7","7","[1,\\"a\\"]"]',
    'select ?::int, a[?], b @> ? ← ["7","7","[1,\\"a\\"]"]',
  ],
  [
    "select $$it's $1; {$$, {{id}}",
    'select $$it\'s $1; {$$, $1 ← ["7"]',
    `a quote or comment does not close: "'s $1; {$$, {{…}}"`,
  ],
  [
    "select $q$ ; '$q$, 'a;b', \"c;d\", {{id}}",
    `select $q$ ; '$q$, 'a;b', "c;d", $1 ← ["7"]`,
    `a quote or comment does not close: "', \\"c;d\\", {{…}}"`,
  ],
  [
    'select /* ; /* ; */ ; */ {{id}}',
    'select /* ; /* ; */ ; */ $1 ← ["7"]',
    'more than one statement: a second one is "*/ {{…}}"',
  ],
  ["select e'it\\'s ;', {{id}}", `select e'it\\'s ;', $1 ← ["7"]`],
  ["select 'it\\'s {{id}}'", `a quote or comment does not close: "'"`, `select ? ← ["it's 7"]`],
  ["select 'a\\n\\%{{id}}'", 'select $1 ← ["a\\\\n\\\\%7"]', 'select ? ← ["a\\n\\\\%7"]'],
  ['select "{{id}}"', 'template 1 is in a quoted name', 'select ? ← ["7"]'],
  [
    'select interval {{id}} day',
    'template 1 comes after "interval"',
    'select interval ? day ← ["7"]',
  ],
  [
    'select a ? {{id}}',
    'select a ? $1 ← ["7"]',
    '? is a parameter of its own: write a template there',
  ],
  [
    'select $1, {{id}}',
    '$1 is a parameter of its own: write a template there',
    'select $1, ? ← ["7"]',
  ],
  ['select 1 # {{id}}', 'select 1 # $1 ← ["7"]', 'template 1 is in a comment'],
  ['select $.math(1+1), {{ id }}', 'select $1, $2 ← ["2","7"]'],
  // Where a template would be a name or a piece of SQL.
  ['select * from {{name}}', 'template 1 is a table of FROM'],
  ['select * from a, {{name}}', 'template 1 is a table of FROM'],
  ['select * from a join {{name}} on 1=1', 'template 1 is a table of JOIN'],
  ['insert into {{name}} values (1)', 'template 1 is a name of INTO'],
  ['insert into t (a, {{name}}) values (1, 2)', 'template 1 is a column of INTO'],
  ['update {{name}} set a = 1', 'template 1 is a table of UPDATE'],
  ['update t set {{name}} = 1', 'template 1 comes after "set"'],
  ['select a from t order by {{name}}', 'template 1 is a column of ORDER BY'],
  ['select a from t order by a, {{name}}', 'template 1 is a column of ORDER BY'],
  ['select a from t order by a {{name}}', 'template 1 comes after "a"'],
  ['select a from t group by {{name}}', 'template 1 is a column of GROUP BY'],
  ['select a from t where {{name}}.b = 1', 'template 1 is joined to what is beside it'],
  ['select t_{{id}} from t', 'template 1 is joined to what is beside it'],
  ['select {{id}}{{id}}', 'template 1 is joined to what is beside it'],
  ["select 'a'{{id}}", 'template 1 is joined to what is beside it'],
  ['select {{name}}(1)', 'template 1 is joined to what is beside it'],
  ['select t.{{name}}', 'template 1 is joined to what is beside it'],
  [
    'select a from `{{name}}`',
    'a quote or comment does not close: "`{{…}}`"',
    'template 1 is in a quoted name',
  ],
  ['select cast(a as {{name}})', 'template 1 comes after "as"'],
  ['select a::{{name}}', 'template 1 comes after "::"'],
  ['select a {{sql}}', 'template 1 comes after "a"'],
  ['{{sql}}', 'template 1 begins the statement'],
  ["select date '{{name}}'", 'template 1 comes after "date"'],
  ["select x'{{name}}'", 'template 1 is in a quoted text with letters or a sign before it'],
  ['select 1 -- {{id}}', 'template 1 is in a comment'],
  ['select 1 /* {{id}} */', 'template 1 is in a comment'],
  ['select 1; select 2; select 3', 'more than one statement: a second one is "select 2; select 3"'],
  ["select '{{id}}'; drop table t", 'more than one statement: a second one is "drop table t"'],
  ["select 'a", `a quote or comment does not close: "'a"`],
  ['select 1 /* a', 'a quote or comment does not close: "/* a"'],
  ['select "a', `a quote or comment does not close: "\\"a"`],
  [' -- nothing\n;', 'it is empty'],
]

for (const [
  query,
  postgres,
  mysql = postgres.replaceAll(/\$[0-9](?= ←|,| |\)|:|\]|$)/g, '?'),
] of bound) {
  for (const [instance, expected] of [
    ['7', postgres],
    ['shop', mysql],
  ] as const) {
    test(`${databases.get(instance)}: ${query}`, () => {
      const is_statement = expected.includes(' ← ')
      const says = expected.startsWith('template')
        ? `query: ${expected}, so no value can be bound there`
        : `query: ${expected}`
      assert.equal(boundIn(instance, query), is_statement ? expected : says)
    })
  }
}

/** [definition, its mistakes, its warnings] */
const definitions: readonly (readonly [JsonObject, string[], string[]])[] = [
  [{ instance_id: 7, query: 'select 1', timeout: '2.5' }, [], []],
  [{ instance_id: 7, query: '' }, [], ['query: it is empty']],
  [{ instance_id: 7 }, [], ['query: it is empty']],
  [{ instance_id: null, query: 'select 1' }, [], ['instance_id names no database']],
  [
    { instance_id: 8, query: 'select * from {{a}}' },
    [],
    ['instance_id "8" is not among the databases of this program (--databases)'],
  ],
  [{ instance_id: 7, query: 1 }, ['query is 1, a text was expected'], []],
  [
    { instance_id: 7, query: 'select 1', timeout: 0 },
    ['timeout 0 is no number of seconds up to 86400'],
    [],
  ],
  [
    { instance_id: 7, query: 'select 1', timeout: '{{t}}' },
    ['timeout "{{t}}" is no number of seconds up to 86400'],
    [],
  ],
  [
    { instance_id: 7, query: 'select 1', params: 'a' },
    ['params is "a", an object was expected'],
    [],
  ],
]
for (const [definition, mistakes, warnings] of definitions) {
  test(`compiled: ${JSON.stringify(definition)}`, () => {
    const made = compiled(definition)
    assert.deepEqual(made.mistakes.slice(0, 1), mistakes)
    if (mistakes.length === 0) assert.deepEqual(made.warnings, warnings)
  })
}

test('params are what the templates of the query find first, with their types', () => {
  const more = { params: { id: '{{name}}', n: '{{exact}}' }, params_type: { n: 'number' } }
  const query = 'select {{id}}, {{n}}, {{yes}}'
  assert.equal(boundIn('7', query, more), `select $1, $2, $3 ← ["O'Brien","1.10","true"]`)
  const wrong = { params: { n: '{{name}}' }, params_type: { n: 'number' } }
  assert.match(boundIn('7', query, wrong), /^db_call_wrong_convert_param: Param: n, Value: O'Brien/)
})

test('a stored definition that was never checked fails a task by its mistake', () => {
  const definition = { instance_id: 7, query: 'select * from {{a}}' }
  const { logic, mistakes } = compiled(definition, false)
  assert.deepEqual(mistakes, [])
  const made = logic.job?.order(contextOf(data))
  assert.ok(made !== undefined && 'command' in made && made.command === 'fail')
  assert.match(made.description, /^template 1 is a table of FROM/)
})

test('values longer than a task are no values', () => {
  const { logic } = compiled({ instance_id: 7, query: 'select {{a}}, {{a}}' })
  const made = logic.job?.order(contextOf({ a: 'x'.repeat(60) }, { task_bytes_max: 100 }))
  assert.ok(made !== undefined && 'command' in made && made.command === 'fail')
  assert.equal(made.tag, 'db_call_size_overflow_limit')
})

test('a long query is scanned in a moment', () => {
  const texts = ["'a'',", '/* */', '$$', "('", 'a.', '{{a}},'].map((one) => one.repeat(40_000))
  const began_ms = performance.now()
  for (const text of texts) for (const id of [7, 'shop']) compiled({ instance_id: id, query: text })
  assert.ok(performance.now() - began_ms < 5_000)
})

test('any query is bound or refused, and what is bound is the query with its templates taken out', () => {
  const piece = fc.constantFrom(
    ...["'", '"', '`', '$$', '$q$', '--', '/*', '*/', '#', ';', '\\', '?', '(', ')', ',', '='],
    ...[' ', '\n', '{{a}}', "'{{a}}'", 'select', 'from', 'e', 'x', '1', "''", ':', '.', 'é', '@'],
  )
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 14 }), (pieces) => {
      const query = `select ${pieces.join('')}`
      for (const instance of ['7', 'shop'] as const) {
        const { logic, mistakes } = compiled({ instance_id: instance, query })
        const made = logic.job?.order(contextOf({ a: "\\' or 1=1; --" }))
        if (made === undefined || !('job' in made) || made.job !== 'db') {
          assert.ok(mistakes.length > 0, query)
          continue
        }
        assert.ok(!made.text.includes('or 1=1'), made.text)
        const literals = query.replaceAll(/'[^']*\{\{a\}\}[^']*'|\{\{a\}\}/g, '')
        if (!/['"`]/.test(literals)) {
          const bare = (text: string) => text.replaceAll(instance === '7' ? /\$[0-9]+/g : '?', '')
          assert.equal(bare(made.text), bare(literals))
        }
      }
    }),
    { numRuns: 3_000 },
  )
})
