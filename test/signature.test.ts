/**
 * The signature rules (specification 5, wire 1.10) on named bytes; the digests were made by another
 * program.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { hmacOf, isSignedBy, pathKindOf, signatureOf } from '../src/codec/signature.ts'

import type { SignatureKind } from '../src/core/model.ts'

interface Vector {
  readonly says: string
  readonly timestamp: string
  readonly secret: string
  readonly body_hex: string
  readonly signature: string
  readonly hmac: string
}

const vectors: Vector[] = [
  {
    says: 'an empty body and an empty secret',
    timestamp: '1370442000',
    secret: '',
    body_hex: '',
    signature: 'a00e336e00fda552ed4f71bbc5167a21c5bf1c42',
    hmac: 'cbdc3fb01b9cdf2326fb45a3d213231c31fc9ff42e5666abc88c9797cad0e634',
  },
  {
    says: 'a short body',
    timestamp: '1370442000',
    secret: 'b2cS_x',
    body_hex: '7b226f7073223a5b5d7d',
    signature: '43ae3d6c5f6730257a12c2548b4d050c5dea1ac7',
    hmac: '65aba289abe124e4b9a713433d0291b39ed808036c39a093647d6be3cbfaabe2',
  },
  {
    says: 'a fraction is signed as written, bytes that are no text as they are',
    timestamp: '1370442000.25',
    secret: 'API_SECRET',
    body_hex: '00ff7b7d',
    signature: 'b488916db3807d423ba9baca29a17999b7e2d6fe',
    hmac: '63ccb0304f7c93c2e50d8eaf105f1107ffa58b0f97cb552c888f412757f359b3',
  },
  {
    says: 'a secret beyond ASCII counts in UTF-8; {"ops":[{"ref":"é"}]} in UTF-8',
    timestamp: '1',
    secret: 'ключ',
    body_hex: '7b226f7073223a5b7b22726566223a22c3a9227d5d7d',
    signature: '4cdaff166f5aeabb142fa283a47eeb24e92823a5',
    hmac: '2c97b3d2c0dab9edc5532f079d30ab518804396a69bd7360d7af165c6f9271e7',
  },
  {
    says: 'the same JSON with \\u00e9 has another signature',
    timestamp: '1',
    secret: 'ключ',
    body_hex: '7b226f7073223a5b7b22726566223a225c7530306539227d5d7d',
    signature: '0852394ae783b24510e141df0d01a468286a7964',
    hmac: 'dd891aafbca1ce908397db8b2d8f12a4d12acda7463909f27d85a114560d1ebe',
  },
  {
    says: 'and so has the same text with a line feed behind it',
    timestamp: '1',
    secret: 'ключ',
    body_hex: '7b226f7073223a5b7b22726566223a22c3a9227d5d7d0a',
    signature: '8ad9c35861f22d946f19aab0a90bedcd8a70f4ac',
    hmac: '79e0b995a5074b282720a5c77fc7503a42d4d2439859d3fd7bce274899d90f1a',
  },
  {
    says: 'a long body',
    timestamp: '1',
    secret: 'ключ',
    body_hex: '61'.repeat(5_000),
    signature: 'a1a928e1c79297c63ca18a3fd462591cda1ee59a',
    hmac: '10263050ce99c481352747ed1d9cf3236fddc70603fac7e3e979520ffa18690f',
  },
]

const kinds = [
  ['path', signatureOf, ({ signature }: Vector) => signature],
  ['hmac', hmacOf, ({ hmac }: Vector) => hmac],
] as const

/** [kind, of the short body, of the long body] */
// biome-ignore format: a table
const longer: readonly (readonly [SignatureKind, string, string])[] = [
  ['path:sha224', 'ac5908e00b8babd1858be4902654c9c304e6a6fb26a898684ad508f0', 'b75f47b1106f29c05b13d60866dc9c8f463da3af5975bf02cc5c8bd3'],
  ['path:sha256', 'cacf66785c732bc2d2023871f60100838ee691afad007f41e4ad5638b2e873f3', 'f1a741e81c63c9631ab27016220eb20f9b627f991cc56cbb2a28b19990d82330'],
  ['path:sha384', '34a57e161ee229e9e1ceca418cfbb258ecaf07b84634319216fe0b2bf82c0adf657c7e101636acf44717d351de8c5dae', 'ea0262b8a92d2b370e7534cc71601a98276ddb35c06bd3776da600f5cf70bf24d373db9e9185dec9e649da41b5c87f1e'],
  ['path:sha512', '48825309e75a12c5be2238c3d8066ead8923da34d8494e475ec21b68077fd7c7bae76f6a62c43a6215d5a7ef05076d9f644c8a671346398c6ab015db51796934', '8b1bda6ba7568ce80d6b8d1cf07aa8b0065c2a7fd8cdbb36eef8cce477a94e706a6602629c0b573398b98867c10e221faa9180548cb31c483305a1a8d77394e3'],
]

describe('signature: a longer digest', () => {
  const of = (says: string) => vectors.find((vector) => vector.says === says) as Vector
  for (const [kind, of_short, of_long] of longer) {
    test(kind, () => {
      assert.equal(pathKindOf(of_short), kind)
      for (const [{ secret, timestamp, body_hex }, signature] of [
        [of('a short body'), of_short],
        [of('a long body'), of_long],
      ] as const) {
        const body = Buffer.from(body_hex, 'hex')
        assert.equal(isSignedBy([secret], kind, timestamp, body, signature), true)
        assert.equal(
          isSignedBy([secret, 'b'], kind, timestamp, body, signature.toUpperCase()),
          true,
        )
        assert.equal(isSignedBy([secret], kind, timestamp, Buffer.from('{}'), signature), false)
        assert.equal(isSignedBy([`${secret}x`], kind, timestamp, body, signature), false)
        assert.equal(isSignedBy([secret], kind, timestamp, body, signature.slice(2)), false)
      }
    })
  }
  test('another number of digits is no kind', () => assert.equal(pathKindOf('ab'), undefined))
})

for (const [kind, sign, wanted] of kinds) {
  describe(`signature: ${kind}`, () => {
    for (const vector of vectors) {
      const { says, timestamp, secret, body_hex } = vector
      test(says, () => {
        const body = Buffer.from(body_hex, 'hex')
        const signature = wanted(vector)
        const isSigned = (secrets: string[], given = signature): boolean =>
          isSignedBy(secrets, kind, timestamp, body, given)
        assert.equal(sign(timestamp, secret, body), signature)
        assert.equal(isSigned([secret]), true)
        assert.equal(isSigned([secret], signature.toUpperCase()), true)
        assert.equal(isSigned(['old', secret]), true, 'a rotated one')
        assert.equal(isSigned([secret, 'new']), true, 'a grace one')
      })
    }

    const [, vector] = vectors as [Vector, Vector]
    const body = Buffer.from(vector.body_hex, 'hex')
    const signature = wanted(vector)
    const other = kind === 'path' ? vector.hmac : vector.signature
    const refused: [string, readonly string[], string, string][] = [
      ['no secret at all', [], vector.timestamp, signature],
      ['another secret', ['b2cS_y'], vector.timestamp, signature],
      ['another timestamp', [vector.secret], '1370442001', signature],
      ['the same time, written otherwise', [vector.secret], '1370442000.0', signature],
      ['a cut signature', [vector.secret], vector.timestamp, signature.slice(0, -2)],
      ['a longer signature', [vector.secret], vector.timestamp, `${signature}00`],
      ['the signature of the other kind', [vector.secret], vector.timestamp, other],
      ['no hex', [vector.secret], vector.timestamp, 'z'.repeat(signature.length)],
      ['no signature', [vector.secret], vector.timestamp, ''],
    ]
    for (const [says, secrets, timestamp, given] of refused) {
      test(`refused: ${says}`, () => {
        // The right one first: nothing of it may still count.
        assert.equal(isSignedBy([vector.secret], kind, vector.timestamp, body, signature), true)
        assert.equal(isSignedBy(secrets, kind, timestamp, body, given), false)
      })
    }
  })
}
