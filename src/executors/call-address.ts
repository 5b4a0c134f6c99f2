/**
 * Which addresses a call may connect to: global unicast only, by the registries of special-purpose
 * addresses. An IPv6 address that embeds an IPv4 address is judged by the latter; other IPv6
 * outside 2000::/3 is refused.
 */
import { isIP } from 'node:net'

type Block = readonly [prefix: string, bits: number, what: string]

export const v4_refused: readonly Block[] = [
  ['0.0.0.0', 8, 'this network'],
  ['10.0.0.0', 8, 'private'],
  ['100.64.0.0', 10, 'shared by a carrier'],
  ['127.0.0.0', 8, 'loopback'],
  ['169.254.0.0', 16, 'link-local'],
  ['172.16.0.0', 12, 'private'],
  ['192.0.0.0', 24, 'protocol assignments'],
  ['192.0.2.0', 24, 'documentation'],
  ['192.88.99.0', 24, 'relays of 6to4'],
  ['192.168.0.0', 16, 'private'],
  ['198.18.0.0', 15, 'benchmarks'],
  ['198.51.100.0', 24, 'documentation'],
  ['203.0.113.0', 24, 'documentation'],
  ['224.0.0.0', 4, 'multicast'],
  ['240.0.0.0', 4, 'reserved'],
]

/** IPv6 prefixes that contain an IPv4 address, with its distance from the right end in bits. */
export const v6_wrappers: readonly [prefix: string, bits: number, shift: number][] = [
  ['::', 96, 0],
  ['::ffff:0:0', 96, 0],
  ['64:ff9b::', 96, 0],
  ['2002::', 16, 80],
]

/** The global unicast block of IPv6, except for the rows below. */
const v6_global: Block = ['2000::', 3, 'not global unicast']

export const v6_refused: readonly Block[] = [
  ['2001::', 23, 'protocol assignments'],
  ['2001:db8::', 32, 'documentation'],
  ['3fff::', 20, 'documentation'],
]

/** Why a call may not connect to an address; undefined where it may. */
export function nonPublicReason(address: string): string | undefined {
  switch (isIP(address)) {
    case 4:
      return nonPublicReasonV4(v4Value(address))
    case 6:
      return address.includes('%') ? 'bound to an interface' : nonPublicReasonV6(v6Value(address))
    default:
      return 'no address'
  }
}

function nonPublicReasonV4(value: number): string | undefined {
  return v4_refused.find(
    ([prefix, bits]) => value >>> (32 - bits) === v4Value(prefix) >>> (32 - bits),
  )?.[2]
}

function nonPublicReasonV6(value: bigint): string | undefined {
  const carried = v6_wrappers.find(([prefix, bits]) => isWithin(value, prefix, bits))
  if (carried !== undefined) {
    return nonPublicReasonV4(Number((value >> BigInt(carried[2])) & 0xffff_ffffn))
  }
  if (!isWithin(value, v6_global[0], v6_global[1])) return v6_global[2]
  return v6_refused.find(([prefix, bits]) => isWithin(value, prefix, bits))?.[2]
}

function isWithin(value: bigint, prefix: string, bits: number): boolean {
  const shift = BigInt(128 - bits)
  return value >> shift === v6Value(prefix) >> shift
}

function v4Value(address: string): number {
  return address.split('.').reduce((value, part) => value * 256 + Number(part), 0)
}

function v6Value(address: string): bigint {
  const [head = '', tail] = address.split('::') as [string, string?]
  const left = groupsOf(head)
  const right = tail === undefined ? [] : groupsOf(tail)
  const zeros = Array<number>(8 - left.length - right.length).fill(0)
  return [...left, ...zeros, ...right].reduce((value, group) => (value << 16n) | BigInt(group), 0n)
}

/** The groups of 16 bits; an IPv4 address at the end is two of them. */
function groupsOf(text: string): number[] {
  if (text === '') return []
  return text.split(':').flatMap((group) => {
    if (!group.includes('.')) return [Number.parseInt(group, 16)]
    const value = v4Value(group)
    return [value >>> 16, value & 0xffff]
  })
}
