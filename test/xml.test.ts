/** XML as JSON and back, and the XML that is refused: entities, document types, too much of it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseJson, stringifyJson } from '../src/codec/json.ts'
import { readXml } from '../src/codec/xml-read.ts'
import { isXmlType, xmlOf } from '../src/codec/xml-write.ts'
import type { JsonObject } from '../src/core/model.ts'

const bounds = { nesting_max: 60, values_max: 1_000 }
const prolog = '<?xml version="1.0" encoding="UTF-8"?>'

function read(xml: string): string {
  const made = readXml(xml, bounds)
  return 'value' in made ? stringifyJson(made.value) : `mistake: ${made.mistake}`
}

function written(json: string): string | undefined {
  return xmlOf(parseJson(json) as JsonObject)?.slice(prolog.length)
}

/** The same in both directions. */
const both: [xml: string, json: string][] = [
  [
    '<root a="1"><item b="2">text</item></root>',
    '{"root":{"@a":"1","item":{"@b":"2","#value":"text"}}}',
  ],
  ['<a>1.10</a>', '{"a":"1.10"}'],
  ['<a></a>', '{"a":""}'],
  ['<a x="1"></a>', '{"a":{"@x":"1"}}'],
  ['<a><b>1</b><b>2</b><c>3</c></a>', '{"a":{"b":["1","2"],"c":"3"}}'],
  [
    '<s:Envelope xmlns:s="urn:x"><s:Body>ж</s:Body></s:Envelope>',
    '{"s:Envelope":{"@xmlns:s":"urn:x","s:Body":"ж"}}',
  ],
  ['<a x="&lt;&quot;&amp;&#10;">&lt;&amp;&gt;"</a>', '{"a":{"@x":"<\\"&\\n","#value":"<&>\\""}}'],
  ['<__proto__><constructor>1</constructor></__proto__>', '{"__proto__":{"constructor":"1"}}'],
]

for (const [xml, json] of both) {
  test(`${xml} is ${json}`, () => {
    assert.equal(read(xml), json)
    assert.equal(written(json), xml)
  })
}

const only_read: [xml: string, json: string][] = [
  [`${prolog}\n<!-- c --><?p i?>\n<a>\n <b> t </b>\n</a>\n`, '{"a":{"b":"t"}}'],
  ['\ufeff<a><![CDATA[<b>&amp;]]></a>', '{"a":"<b>&amp;"}'],
  ['<a>t<b/>u</a>', '{"a":{"b":"","#value":"tu"}}'],
  ['<a>&#65;&#x42;</a>', '{"a":"AB"}'],
  [`<a __proto__="1" toString="2"/>`, '{"a":{"@__proto__":"1","@toString":"2"}}'],
  ['<a><__proto__>1</__proto__><__proto__/></a>', '{"a":{"__proto__":["1",""]}}'],
]

for (const [xml, json] of only_read) {
  test(`${JSON.stringify(xml)} is read as ${json}`, () => assert.equal(read(xml), json))
}

const laughs = Array.from({ length: 9 }, (_, n) => `<!ENTITY l${n + 1} "${`&l${n};`.repeat(10)}">`)
const refused: [what: string, xml: string, mistake: RegExp][] = [
  ['nothing', '', /root/],
  ['no XML', '{"a":1}', /text data outside/],
  ['two roots', '<a/><b/>', /one root/],
  ['an element that does not close', '<a><b></a>', /unexpected close tag/],
  ['the end in the middle', '<a><b>', /unclosed/],
  ['an attribute twice', '<a b="1" b="2"/>', /duplicate/],
  ['an entity of its own', '<a>&x;</a>', /undefined entity/],
  [
    'a billion laughs',
    `<!DOCTYPE a [<!ENTITY l0 "ha">${laughs.join('')}]><a>&l9;</a>`,
    /a document type/,
  ],
  ['an external entity', '<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>', /a document type/],
  ['a control character', '<a>\u0001</a>', /disallowed/],
  ['a lone surrogate', '<a>&#xd800;</a>', /malformed/],
  ['61 levels', '<a>'.repeat(61) + '</a>'.repeat(61), /deeper than 60/],
  ['a million levels', '<a>'.repeat(1_000_000), /deeper than 60/],
  ['more elements', `<a>${'<b/>'.repeat(1_000)}</a>`, /more than 1000 values/],
  [
    'more attributes',
    `<a ${Array.from({ length: 1_000 }, (_, n) => `a${n}=""`).join(' ')}/>`,
    /more than 1000 values/,
  ],
]

for (const [what, xml, mistake] of refused) {
  test(`${what} is refused`, () => assert.match(read(xml), mistake))
}

const unwritten: [json: string, xml: string | undefined][] = [
  ['{"a":null}', '<a></a>'],
  ['{"a":1.10}', '<a>1.10</a>'],
  ['{"a":{"b":[true,[1,2]],"c":[]}}', '<a><b>true</b><b>1</b><b>2</b></a>'],
  ['{"a":{"@b":{"x":1}}}', '<a b="{&quot;x&quot;:1}"></a>'],
  ...['{}', '{"a":1,"b":2}', '{"a":[1]}', '{"":1}', '{"#value":1}', '{"@a":1}'].map(
    (json): [string, undefined] => [json, undefined],
  ),
  ...[
    '{"a b":1}',
    '{"a><b":1}',
    '{"a":{"@x y":1}}',
    '{"a":"\\u0000"}',
    '{"a":{"@b":"\\uffff"}}',
  ].map((json): [string, undefined] => [json, undefined]),
]

for (const [json, xml] of unwritten) {
  test(`${json} is ${xml ?? 'no XML'}`, () => assert.equal(written(json), xml))
}

test('content types of XML', () => {
  const types = ['application/xml', 'TEXT/XML; charset=utf-8', 'application/soap+xml', 'soap/xml']
  for (const type of types) assert.ok(isXmlType(type), type)
  for (const type of ['', 'application/json', 'text/xmlx', 'text/html; a=text/xml']) {
    assert.ok(!isXmlType(type), type)
  }
})
