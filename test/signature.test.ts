/** The signature rule (specification 5) on named bytes; the digests were made by another program. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { isSignedBy, signatureOf } from '../src/codec/signature.ts'

interface Vector {
  readonly says: string
  readonly timestamp: string
  readonly secret: string
  readonly body_hex: string
  readonly signature: string
}

const vectors: Vector[] = [
  {
    says: 'an empty body and an empty secret',
    timestamp: '1370442000',
    secret: '',
    body_hex: '',
    signature: 'a00e336e00fda552ed4f71bbc5167a21c5bf1c42',
  },
  {
    says: 'a short body',
    timestamp: '1370442000',
    secret: 'b2cS_x',
    body_hex: '7b226f7073223a5b5d7d',
    signature: '43ae3d6c5f6730257a12c2548b4d050c5dea1ac7',
  },
  {
    says: 'a fraction is signed as written, bytes that are no text as they are',
    timestamp: '1370442000.25',
    secret: 'API_SECRET',
    body_hex: '00ff7b7d',
    signature: 'b488916db3807d423ba9baca29a17999b7e2d6fe',
  },
  {
    says: 'a secret beyond ASCII counts in UTF-8; {"ops":[{"ref":"é"}]} in UTF-8',
    timestamp: '1',
    secret: 'ключ',
    body_hex: '7b226f7073223a5b7b22726566223a22c3a9227d5d7d',
    signature: '4cdaff166f5aeabb142fa283a47eeb24e92823a5',
  },
  {
    says: 'the same JSON with \\u00e9 has another signature',
    timestamp: '1',
    secret: 'ключ',
    body_hex: '7b226f7073223a5b7b22726566223a225c7530306539227d5d7d',
    signature: '0852394ae783b24510e141df0d01a468286a7964',
  },
  {
    says: 'and so has the same text with a line feed behind it',
    timestamp: '1',
    secret: 'ключ',
    body_hex: '7b226f7073223a5b7b22726566223a22c3a9227d5d7d0a',
    signature: '8ad9c35861f22d946f19aab0a90bedcd8a70f4ac',
  },
  {
    says: 'a long body',
    timestamp: '1',
    secret: 'ключ',
    body_hex: '61'.repeat(5_000),
    signature: 'a1a928e1c79297c63ca18a3fd462591cda1ee59a',
  },
]

describe('signature', () => {
  for (const { says, timestamp, secret, body_hex, signature } of vectors) {
    test(says, () => {
      const body = Buffer.from(body_hex, 'hex')
      assert.equal(signatureOf(timestamp, secret, body), signature)
      assert.equal(isSignedBy([secret], timestamp, body, signature), true)
      assert.equal(isSignedBy([secret], timestamp, body, signature.toUpperCase()), true)
      assert.equal(isSignedBy(['old', secret], timestamp, body, signature), true, 'a rotated one')
      assert.equal(isSignedBy([secret, 'new'], timestamp, body, signature), true, 'a grace one')
    })
  }

  const [, vector] = vectors as [Vector, Vector]
  const body = Buffer.from(vector.body_hex, 'hex')
  const refused: [string, readonly string[], string, string][] = [
    ['no secret at all', [], vector.timestamp, vector.signature],
    ['another secret', ['b2cS_y'], vector.timestamp, vector.signature],
    ['another timestamp', [vector.secret], '1370442001', vector.signature],
    ['the same time, written otherwise', [vector.secret], '1370442000.0', vector.signature],
    ['a cut signature', [vector.secret], vector.timestamp, vector.signature.slice(0, 38)],
    ['a longer signature', [vector.secret], vector.timestamp, `${vector.signature}00`],
    ['no hex', [vector.secret], vector.timestamp, 'z'.repeat(40)],
    ['no signature', [vector.secret], vector.timestamp, ''],
  ]
  for (const [says, secrets, timestamp, signature] of refused) {
    test(`refused: ${says}`, () => {
      // The right one first: nothing of it may still count.
      assert.equal(isSignedBy([vector.secret], vector.timestamp, body, vector.signature), true)
      assert.equal(isSignedBy(secrets, timestamp, body, signature), false)
    })
  }
})
