/** The `api` logic as tables: definition and data → request; response → the data after it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JsonObject } from '../src/core/model.ts'
import type {
  CallRequest,
  EvaluationContext,
  JobOrder,
  JobOutcome,
  Logic,
} from '../src/process/logic.ts'
import { logicTable } from '../src/process/logics/table.ts'
import { contextOf, notes } from './support/logic-context.ts'

const url = 'https://a.example/x'

function compiled(definition: object): { logic: Logic; mistakes: string[]; warnings: string[] } {
  const report = notes()
  const row = logicTable.find(({ type }) => type === 'api')
  const logic = row?.compile({ type: 'api', url, ...definition } as JsonObject, report) as Logic
  return { logic, mistakes: report.mistakes, warnings: report.warnings }
}

/** What is sent; or undefined where the logic does not come to that. */
function requestOf(definition: object, data = '{}'): CallRequest | undefined {
  const made = compiled(definition).logic.job?.order(contextOf(data))
  return made !== undefined && 'job' in made && made.job === 'call' ? made.request : undefined
}

/** The request as a line followed by its headers; or the tag of a failed expansion. */
function requested(definition: object, data: string): string[] {
  const { logic, mistakes } = compiled(definition)
  assert.deepEqual(mistakes, [])
  const made = logic.job?.order(contextOf(data))
  if (made === undefined || 'command' in made) {
    return made?.command === 'fail' ? [made.error_type, made.tag] : ['nothing']
  }
  const { method, url: to, headers, body = [] } = requestOf(definition, data) as CallRequest
  return [`${method} ${to}`, ...headers.map((header) => header.join(': '))].concat(body)
}

const json = 'content-type: application/json'
const form = 'content-type: application/x-www-form-urlencoded'

const xml = { content_type: 'application/xml' }
const prolog = '<?xml version="1.0" encoding="UTF-8"?>'
const sys = '{"ref":"order-1","obj_id":"","conv_id":"1234","node_id":""}'

type Asked = [what: string, definition: object, request: string[], data?: string]
const requests: Asked[] = [
  ['nothing to send', {}, [`POST ${url}`, json, '{}']],
  [
    'extra with types, as JSON',
    {
      extra: { a: '{{a}}', n: '7', t: 'x{{b}}', '{{k}}': 'v', o: '{"x":{{a}}}' },
      extra_type: { n: 'number', o: 'object' },
    },
    [`POST ${url}`, json, '{"a":1.10,"n":7,"t":"xtrue","key":"v","o":{"x":1.10}}'],
    '{"a":1.10,"b":true,"k":"key"}',
  ],
  [
    'extra as a form',
    { content_type: 'application/x-www-form-urlencoded', extra: { a: '{{a}}', 'b.c[0]': '{{o}}' } },
    [`POST ${url}`, form, 'a=%D0%B6%26%3D&b.c%5B0%5D=%7B%22x%22%3A1.10%7D'],
    '{"a":"ж&=","o":{"x":1.10}}',
  ],
  [
    'a form by the header alone',
    { extra_headers: { 'Content-Type': 'application/x-www-form-urlencoded' }, extra: { a: '1' } },
    [`POST ${url}`, form, 'a=1'],
  ],
  [
    'GET puts extra into the query',
    { method: 'get', url: `${url}?p=1#top`, extra: { a: '{{a}}', b: 'c&d' } },
    [`GET ${url}?p=1&a=%5B1%5D&b=c%26d#top`],
    '{"a":[1]}',
  ],
  ['GET without extra', { method: 'GET', extra: {} }, [`GET ${url}`]],
  ['HEAD as GET', { method: 'HEAD', extra: { a: '1' } }, [`HEAD ${url}?a=1`]],
  ['DELETE without extra has no body', { method: 'DELETE', extra: [] }, [`DELETE ${url}`]],
  [
    'DELETE with extra',
    { method: 'DELETE', extra: { a: '1' } },
    [`DELETE ${url}`, json, '{"a":"1"}'],
  ],
  [
    'raw: the whole body from one template',
    { format: 'raw', raw_body: '{{body}}', content_type: 'application/json' },
    [`POST ${url}`, json, '{"a":1.10}'],
    '{"body":{"a":1.10}}',
  ],
  [
    'raw: what is put into JSON stays data',
    { format: 'raw', raw_body: '{"name":"{{name}}","n":{{n}}}' },
    [`POST ${url}`, json, '{"name":"\\",\\"admin\\":\\"","n":1}'],
    '{"name":"\\",\\"admin\\":\\"","n":"1"}',
  ],
  [
    'raw: no member can be put into JSON',
    { format: 'raw', raw_body: '{"n":{{n}}}' },
    ['software', 'api_wrong_convert_param'],
    '{"n":"1,\\"admin\\":true"}',
  ],
  [
    'raw: any other text as it is',
    { format: 'raw', raw_body: '<a>{{a}}</a>', content_type: 'text/xml' },
    [`POST ${url}`, 'content-type: text/xml', '<a>{{b}}</a>'],
    '{"a":"{{b}}","b":"x"}',
  ],
  [
    'the names of the task where it is asked for',
    { send_sys: true, extra: { a: '1' } },
    [`POST ${url}`, json, `{"a":"1","sys":${sys}}`],
  ],
  ['GET names no task', { send_sys: true, method: 'GET' }, [`GET ${url}`]],
  [
    'a form names no task',
    { send_sys: true, content_type: form.slice(14), extra: { a: '1' } },
    [`POST ${url}`, form, 'a=1'],
  ],
  ...['application/xml', 'text/xml; charset=utf-8', 'application/soap+xml', 'soap/xml'].map(
    (content_type): Asked => [
      `${content_type}: extra as XML`,
      { content_type, send_sys: true, extra: { '{{r}}': '{{v}}' } },
      [
        `POST ${url}`,
        `content-type: ${content_type}`,
        `${prolog}<root a="1.10"><item b="2">&lt;t&gt;</item><item></item></root>`,
      ],
      '{"r":"root","v":{"@a":1.10,"item":[{"@b":"2","#value":"<t>"},null]}}',
    ],
  ),
  [
    'XML by the header alone',
    { extra_headers: { 'content-type': 'text/xml' }, extra: { a: 'x' } },
    [`POST ${url}`, 'content-type: text/xml', `${prolog}<a>x</a>`],
  ],
  ['XML: GET has a query', { ...xml, method: 'GET', extra: { a: '1' } }, [`GET ${url}?a=1`]],
  ...[{}, { a: '1', b: '2' }, { 'a b': '1' }, { a: '{{list}}' }, { a: '{{control}}' }].map(
    (extra): Asked => [
      `invalid XML: ${JSON.stringify(extra)}`,
      { ...xml, extra },
      ['hardware', 'api_bind_error'],
      '{"list":[1],"control":"\\u0001"}',
    ],
  ),
  ...['json', '', null].map(
    (format): Asked => [
      `format ${format}`,
      { format, extra: { a: '{{a}}' } },
      [`POST ${url}`, 'content-type: application/json', '{"a":1}'],
      '{"a":1}',
    ],
  ),
  ['raw: GET has no body', { format: 'raw', method: 'GET', raw_body: 'x' }, [`GET ${url}`]],
  [
    'url and headers from the data, which is not a template',
    { url: '{{u}}/{{id}}', extra_headers: { 'X-{{h}}': 'Bearer {{t}}', n: 7, e: '{{none}}' } },
    ['POST http://b.example/{{t}}', 'x-a: Bearer {{u}}', 'n: 7', json, '{}'],
    '{"u":"http://b.example","id":"{{t}}","h":"A","t":"{{u}}"}',
  ],
  [
    'what the connection sets itself is left out',
    { extra_headers: { Host: 'b', 'content-length': '1', '{{h}}': 'x', 'X-A': '1' } },
    [`POST ${url}`, 'x-a: 1', json, '{}'],
    '{"h":"Transfer-Encoding"}',
  ],
  ...['a\r\nb: c', 'a\nb', 'a\u0000', 'ж'].map(
    (value): Asked => [
      `a header of ${JSON.stringify(value)}`,
      { extra_headers: { 'x-a': '{{a}}' } },
      ['hardware', 'api_bind_error'],
      JSON.stringify({ a: value }),
    ],
  ),
  [
    'an invalid name of a header',
    { extra_headers: { '{{a}}': 'x' } },
    ['hardware', 'api_bind_error'],
    '{"a":"x y"}',
  ],
  [
    'a failed conversion',
    { extra: { a: '{{a}}' }, extra_type: { a: 'number' } },
    ['software', 'api_wrong_convert_param'],
    '{"a":"x"}',
  ],
  [
    'an expansion over the size of a task',
    { extra: { a: '{{a}}{{a}}{{a}}' } },
    ['software', 'api_task_size_overflow_limit'],
    JSON.stringify({ a: 'x'.repeat(60_000) }),
  ],
  [
    'corezoid: the task in its envelope, always by POST',
    { format: 'corezoid', method: 'GET' },
    [
      `POST ${url}`,
      json,
      '{"ops":[{"ref":"order-1","obj_id":"","conv_id":"1234","node_id":"","type":"data","data":{"a":1.10}}]}',
    ],
    '{"a":1.10}',
  ],
  [
    'corezoid: with what extra adds',
    { format: 'corezoid', extra: { b: '{{a}}' } },
    [
      `POST ${url}`,
      json,
      '{"ops":[{"ref":"order-1","obj_id":"","conv_id":"1234","node_id":"","type":"data","data":{"a":1},"extra":{"b":1}}]}',
    ],
    '{"a":1}',
  ],
]

for (const [what, definition, expected, data = '{}'] of requests) {
  test(`request: ${what}`, () => assert.deepEqual(requested(definition, data), expected))
}

const signed: [definition: object, sign: unknown][] = [
  [{}, undefined],
  [{ send_sys: true }, undefined],
  [{ format: 'corezoid' }, { conv_id: '1234', secret: '' }],
  [
    { format: 'corezoid', api_secret_outer: 's' },
    { conv_id: '1234', secret: 's' },
  ],
  [{ api_secret_outer: '{{s}}' }, { conv_id: '1234', secret: 'from data' }],
  [{ api_secret_outer: 's', send_sys: false }, undefined],
]

for (const [definition, sign] of signed) {
  test(`signed: ${JSON.stringify(definition)}`, () =>
    assert.deepEqual(requestOf(definition, '{"s":"from data"}')?.sign, sign))
}

for (const [cert_pem, expected] of [
  ['', undefined],
  ['PEM', 'PEM'],
  ['{{pem}}', 'from data'],
  ['{{none}}', undefined],
]) {
  test(`the certificate ${JSON.stringify(cert_pem)} is ${expected}`, () => {
    const request = requestOf({ cert_pem }, '{"pem":"from data"}')
    assert.ok(request)
    assert.equal(request.cert_pem, expected)
    assert.ok(!JSON.stringify([request.headers, request.url]).includes('PEM'))
  })
}

for (const [given, threads_max] of [
  [null, 0],
  [5, 5],
  ['7', 7],
  [0, 0],
]) {
  test(`max_threads ${given} is ${threads_max}`, () => {
    for (const name of ['max_threads', 'max_theads']) {
      assert.equal(requestOf({ [name]: given })?.threads_max, threads_max, name)
    }
  })
}

for (const [retry, more] of [
  [null, { attempts_max: 1, backoff_ms: 1_000 }],
  [{ attempts_max: 3 }, { backoff_ms: 1_000 }],
  [{ attempts_max: 100, backoff_ms: 300_000 }, {}],
] as const) {
  test(`retry ${JSON.stringify(retry)}`, () =>
    assert.deepEqual(requestOf({ retry })?.retry, { ...retry, ...more }))
}

const mistakes: [definition: object, starts: string][] = [
  [{ method: 'CONNECT' }, 'method "CONNECT" is none of GET'],
  [{ method: 7 }, 'method 7 is none of GET'],
  [{ format: 'soap' }, 'format "soap" is none of'],
  [{ url: 7 }, 'url is 7, a text was expected'],
  [{ max_threads: -1 }, 'max_threads -1 is no number'],
  [{ max_threads: 'x' }, 'max_threads "x" is no number'],
  [{ extra: 'x' }, 'extra is "x", an object was expected'],
  [{ extra_headers: { 'a b': 'x' } }, 'extra_headers["a b"] is no name of a header'],
  [{ extra_headers: { 'a\r\nb': 'x' } }, 'extra_headers["a\\r\\nb"] is no name of a header'],
  [{ extra_headers: { a: {} } }, 'extra_headers["a"] is an object, a text was expected'],
  [{ retry: 3 }, 'retry is 3, an object was expected'],
  [{ retry: { attempts_max: 0 } }, 'retry.attempts_max 0 is no whole number from 1 to 100'],
  [{ retry: { attempts_max: 101 } }, 'retry.attempts_max 101 is no whole'],
  [{ retry: { attempts_max: 2, backoff_ms: 1.5 } }, 'retry.backoff_ms 1.5 is no whole'],
  [{ retry: { attempts_max: 2, backoff_ms: 300_001 } }, 'retry.backoff_ms 300001 is no whole'],
  [{ content_type: '{{a}}' }, 'content_type holds a template'],
  [{ format: 'raw', raw_body: true }, 'raw_body is true, a text was expected'],
  [{ customize_response: true, response: { a: 7 } }, 'response["a"] is 7, a text was expected'],
  [{ customize_response: 'x' }, 'customize_response is "x"'],
  [{ err_node_id: 'x' }, 'err_node_id is no node'],
]

for (const [definition, starts] of mistakes) {
  test(`mistake: ${JSON.stringify(definition)}`, () => {
    const [mistake = 'none'] = compiled(definition).mistakes
    assert.equal(mistake.slice(0, starts.length), starts)
  })
}

const warnings: [definition: object, starts: string | undefined][] = [
  [{}, undefined],
  [{ url: '' }, 'url is empty'],
  [{ url: 'ftp://x' }, 'url "ftp://x" is neither http nor https'],
  [{ url: '{{u}}' }, undefined],
  [{ cert_pem: 's3cret' }, 'cert_pem is no certificate with its private key: calls by https'],
  [{ cert_pem: 's3cret {{' }, 'cert_pem is no certificate with its private key: calls by https'],
  [{ cert_pem: {} }, 'cert_pem is no certificate'],
  [{ cert_pem: '' }, undefined],
  [{ cert_pem: '{{pem}}' }, undefined],
  [{ ...xml, extra: { a: '1' } }, undefined],
  [{ ...xml, extra: {} }, 'extra of an XML body has one member, the root tag'],
  [{ ...xml, method: 'DELETE', extra: {} }, undefined],
  [{ extra: { a: '1' }, extra_type: { a: 'int' } }, 'extra_type["a"] "int" is none of'],
  [{ format: 'corezoid' }, 'format corezoid without api_secret_outer'],
  [{ extra_headers: { Host: 'x' } }, 'extra_headers["Host"] is ignored'],
]

for (const [definition, starts] of warnings) {
  test(`warning: ${JSON.stringify(definition)}`, () => {
    const [warning, ...more] = compiled(definition).warnings
    assert.equal(warning?.slice(0, starts?.length), starts)
    assert.ok(![warning, ...more].join().includes('s3cret'))
  })
}

/** The data after the answer, or `tag: description`. */
function answered(
  definition: object,
  outcome: JobOutcome,
  { data = '{"a":1,"b":2}', task_bytes_max = 131_072 } = {},
): string {
  const { logic, mistakes } = compiled(definition)
  assert.deepEqual(mistakes, [])
  // As the engine's contexts, whose members are on their prototype.
  const context: EvaluationContext = Object.create(contextOf(data, { task_bytes_max }))
  const command = logic.job?.finish(context, ordered(context), outcome)
  if (command?.command === 'set') return command.doc.text
  return command?.command === 'fail'
    ? `${command.error_type} ${command.tag}: ${command.description}`
    : 'nothing'
}

const done = (text: string, status = 200, type = 'application/json'): JobOutcome => ({
  outcome: 'done',
  text,
  status,
  headers: Object.entries({ 'content-type': type, 'x-left': '7' }),
  figures: { exec_ms: 1.5, request_bytes: 2, status, response_bytes: text.length },
})
const form_type = 'application/x-www-form-urlencoded'
const figures = (res_code: number, res_bytes: number) =>
  `{"http_exec_time":1.5,"http_req_body_size":2,"http_res_code":${res_code},"http_res_body_size":${res_bytes}}`
const no_answer: JobOutcome = {
  ...{ outcome: 'failed', error_type: 'software', tag: 'api_bad_answer', description: 'timeout' },
}
const mapped = (response: object, response_type: object = {}) => ({
  ...{ customize_response: true, response, response_type },
})
const corezoid = { format: 'corezoid', api_secret_outer: 's' }
const ops = (op: object) => done(JSON.stringify({ request_proc: 'ok', ops: [op] }))

const invalid = (text: string): string => `software api_no_valid_json: Please check: ${text}`
const unconverted = (param: string, value: string, to: string): string =>
  `software api_wrong_convert_param: Param: ${param}, Value: ${value}, Try convert to: ${to}`
const no_request_proc =
  'software api_no_request_proc: Bad request_proc tag. ' +
  'Please fill request_proc=ok for your answer. If you want to put error use proc!=ok'

type Answered = [what: string, definition: object, outcome: JobOutcome, becomes: string]
const answers: Answered[] = [
  ['an object', {}, done('{"b":1.10,"c":null}'), '{"a":1,"b":1.10,"c":null}'],
  ['201', {}, done('{"c":3}', 201), '{"a":1,"b":2,"c":3}'],
  ['202', {}, done('{"c":3}', 202), '{"a":1,"b":2,"c":3}'],
  ['__proto__', {}, done('{"__proto__":1}'), '{"a":1,"b":2,"__proto__":1}'],
  ['an array', {}, done('[1]'), '{"a":1,"b":2,"__conveyor_api_array__":[1]}'],
  ['an image', {}, done('1234', 200, 'image/png'), '{"a":1,"b":2,"__conveyor_api_image__":"1234"}'],
  [
    'an image, mapped',
    mapped({ c: '{{body}}', '{{header.x-left}}-{{a}}': '{{a}}' }, { c: 'string' }),
    done('1234', 201, 'Image/PNG; x=y'),
    '{"a":1,"b":2,"c":"1234","7-1":1}',
  ],
  ['a form', {}, done('c=1+2&d=%C3%A9&d=', 200, form_type), '{"a":1,"b":2,"c":"1 2","d":["é",""]}'],
  [
    'a form, mapped',
    mapped({ c: '{{body.c}}', d: '{{body}}' }, { d: 'object' }),
    done('c=1', 200, `${form_type}; charset=utf-8`),
    '{"a":1,"b":2,"c":"1","d":{"c":"1"}}',
  ],
  ['JSON that is called a form', {}, done('{"c":1}', 200, form_type), '{"a":1,"b":2,"c":1}'],
  ['a bad form', {}, done('c=%', 200, form_type), invalid('c=%')],
  [
    'a form of too many values',
    {},
    done('c&'.repeat(100_001), 200, form_type),
    invalid(`${'c&'.repeat(64)}…`),
  ],
  [
    'a header whatever its case',
    mapped({ c: '{{header.X-Left}}', d: '$.to_string({{ header[X-LEFT] }}) {{A.B}}' }),
    done('{}'),
    '{"a":1,"b":2,"c":"7","d":"7 "}',
  ],
  ['a number', {}, done('7'), invalid('7')],
  ...[{}, { rfc_format: true }, mapped({ c: '{{body.c}}' }, { c: 'string' })].flatMap(
    (definition): Answered[] => {
      const what = `without a body: ${JSON.stringify(definition)}`
      const empty = invalid('the answer is empty')
      const is_mapped = 'response' in definition
      const set = is_mapped ? '{"a":1,"b":2,"c":""}' : '{"a":1,"b":2}'
      const by_rfc = { ...definition, rfc_format: true }
      return [
        [`200 ${what}`, definition, done(''), is_mapped ? set : empty],
        [`202 ${what}`, definition, done('', 202), set],
        [`201, by the RFC, ${what}`, by_rfc, done('', 201), empty],
        [`202, by the RFC, ${what}`, by_rfc, done('', 202), set],
      ]
    },
  ),
  [
    'figures',
    { debug_info: true },
    done('{"c":3}'),
    `{"a":1,"b":2,"__conveyor_api_debug__":${figures(200, 7)},"c":3}`,
  ],
  ['no figures', { debug_info: false }, done('{"c":3}'), '{"a":1,"b":2,"c":3}'],
  ['nothing to HEAD', { method: 'HEAD' }, done(''), '{"a":1,"b":2}'],
  ['HTML', {}, done('<html>'), invalid('<html>')],
  ['half of JSON', {}, done('{"a":'), invalid('{"a":')],
  ['a lone surrogate', {}, done('{"a":"\\ud800"}'), invalid('{"a":"\\ud800"}')],
  [
    'keys of a response that are paths',
    mapped({ 'x.y[0]': '{{body.c}}', 'x.z\\.w': '' }, { 'x.y[0]': 'number' }),
    done('{"c":3}'),
    '{"a":1,"b":2,"x":{"y":[3],"z.w":""}}',
  ],
  [
    'a key of a response that leads through a number',
    mapped({ 'a.y': '{{body.c}}' }),
    done('{"c":3}'),
    unconverted('a', '1', 'object'),
  ],
  [
    'a field of the task beside the body',
    mapped({ r: '{{root.ref}}', c: '{{body.c}}' }),
    done('{"c":3}'),
    '{"a":1,"b":2,"r":"order-1","c":3}',
  ],
  [
    'too deep',
    {},
    done(`{"a":${'['.repeat(70)}${']'.repeat(70)}}`),
    invalid(`{"a":${'['.repeat(70)}${']'.repeat(53)}…`),
  ],
  ['204', {}, done('', 204), 'software api_bad_answer: 204'],
  ['404', {}, done('{"c":3}', 404), 'software api_bad_answer: 404'],
  ['302', {}, done('', 302), 'software api_bad_answer: 302'],
  [
    'a failure of the executor',
    {},
    { outcome: 'failed', error_type: 'hardware', tag: 'api_bind_error', description: 'x' },
    'hardware api_bind_error: x',
  ],
  [
    'the editor’s mapping',
    mapped({ header: '{{header}}', body: '{{body}}' }, { header: 'object', body: 'object' }),
    done('{"c":[1]}'),
    '{"a":1,"b":2,"header":{"content-type":"application/json","x-left":"7"},"body":{"c":[1]}}',
  ],
  [
    'an array where the editor wrote object',
    mapped({ body: '{{body}}' }, { body: 'object' }),
    done('[1]'),
    '{"a":1,"b":2,"body":[1]}',
  ],
  [
    'paths and types',
    mapped(
      { id: '{{body.u.id}}', left: '{{header.x-left}}', text: 'id {{body.u.id}}' },
      { id: 'string', left: 'number', text: 'string' },
    ),
    done('{"u":{"id":7}}'),
    '{"a":1,"b":2,"id":"7","left":7,"text":"id 7"}',
  ],
  [
    'data of the answer is no template',
    mapped({ c: '{{body.c}}' }),
    done('{"c":"{{header}}"}'),
    '{"a":1,"b":2,"c":"{{header}}"}',
  ],
  ['what is missing is empty', mapped({ b: '{{body.b}}' }), done('{}'), '{"a":1,"b":""}'],
  [
    'what is missing is empty, whatever its type',
    mapped({ b: '{{body.b}}', c: '{{body.c[0].d}}' }, { b: 'number', c: 'object' }),
    done('{}'),
    '{"a":1,"b":"","c":""}',
  ],
  [
    'an object where an array is asked for',
    mapped({ c: '{{body}}' }, { c: 'array' }),
    done('{"d":1.10}'),
    '{"a":1,"b":2,"c":[{"d":1.10}]}',
  ],
  [
    'a body of an earlier call is not that of this one',
    mapped({ c: '{{body}}{{header.x-none}}' }, { c: 'string' }),
    done('', 202),
    '{"a":1,"b":2,"c":""}',
  ],
  [
    'a mapping that makes too much of it',
    mapped({ c: '{{body.c}}{{body.c}}{{body.c}}' }),
    done(`{"c":"${'x'.repeat(60_000)}"}`),
    'software api_task_size_overflow_limit: longer than 131072 bytes',
  ],
  [
    'what cannot be converted',
    mapped({ n: '{{body.n}}' }, { n: 'number' }),
    done('{"n":"x"}'),
    unconverted('n', 'x', 'number'),
  ],
  [
    'HTML, mapped as an object',
    mapped({ body: '{{body}}' }, { body: 'object' }),
    done('<html>'),
    invalid('<html>'),
  ],
  [
    'HTML, mapped as text',
    mapped({ body: '{{body}}' }, { body: 'string' }),
    done('<html>'),
    '{"a":1,"b":2,"body":"<html>"}',
  ],
  ['HTML, a path into it', mapped({ id: '{{body.id}}' }), done('<html>'), invalid('<html>')],
  [
    'a mapping that is switched off',
    { customize_response: false, response: { body: '{{body}}' } },
    done('{"c":3}'),
    '{"a":1,"b":2,"c":3}',
  ],
  ['res_data', corezoid, ops({ proc: 'ok', res_data: { b: 1.5 } }), '{"a":1,"b":1.5}'],
  ['an empty map of res_data', corezoid, ops({ proc: 'ok', res_data: [] }), '{"a":1,"b":2}'],
  ['corezoid: HTML', corezoid, done('<html>'), invalid('<html>')],
  ['corezoid: no request_proc', corezoid, done('{"ops":[]}'), no_request_proc],
  ['corezoid: an array', corezoid, done('[]'), no_request_proc],
  [
    'corezoid: no ops',
    corezoid,
    done('{"request_proc":"ok","ops":[]}'),
    'software api_no_ops: No ops. Please check documentation',
  ],
  [
    'corezoid: an op that failed',
    corezoid,
    ops({ proc: 'fail', res_data: { error: 'x' } }),
    'software api_bad_answer: proc "fail": {"error":"x"}',
  ],
  [
    'corezoid: no res_data',
    corezoid,
    ops({ proc: 'ok' }),
    'software api_bad_res_data: Bad res_data: nothing. Please check documentation',
  ],
  [
    'corezoid: res_data that is text',
    corezoid,
    ops({ proc: 'ok', res_data: 'x' }),
    'software api_bad_res_data: Bad res_data: "x". Please check documentation',
  ],
]

for (const [what, definition, outcome, becomes] of answers) {
  test(`answer: ${what}`, () => assert.equal(answered(definition, outcome), becomes))
}

test('a response that makes the task too large fails and leaves the data unchanged', () => {
  assert.equal(
    answered({}, done('{"c":"xxxxxxxxxx"}'), { data: '{}', task_bytes_max: 10 }),
    'software api_task_size_overflow_limit: Your task size: 18 bytes, Max available task size: 10 bytes, Try to change your data or try to split your task',
  )
})

const debugged: [what: string, outcome: JobOutcome, data: string][] = [
  [
    'the figures of an answer',
    done('', 500),
    `{"a":1,"__conveyor_api_debug__":${figures(500, 0)}}`,
  ],
  ['none of a call without an answer', no_answer, '{"a":1}'],
]

for (const [what, outcome, becomes] of debugged) {
  test(`a failure with debug_info keeps ${what}`, () => {
    const { logic } = compiled({ debug_info: true })
    const context = contextOf('{"a":1,"__conveyor_api_debug__":{"http_res_code":200}}')
    const command = logic.job?.finish(context, ordered(context), outcome)
    assert.ok(command?.command === 'fail')
    assert.equal(command.doc?.text, becomes)
  })
}

function ordered({ doc }: EvaluationContext): JobOrder {
  return { job: 'handler', handler: '', is_awaited: false, doc }
}
