/**
 * Counts the open connections of each remote address, so that one address alone does not take all
 * that a listener has. An IPv6 network of 64 bits, which one host may use as it likes, is one
 * address here, and an IPv4 address is the same in either form.
 */
import type { Socket } from 'node:net'

export interface AddressConnections {
  /** Counts a connection until it closes. False where its address has `connections_max` already. */
  enter(socket: Socket): boolean
}

export function newAddressConnections(connections_max: number): AddressConnections {
  /** By network, of those that have any. */
  const open = new Map<string, number>()
  return {
    enter(socket) {
      const network = networkOf(socket.remoteAddress ?? '')
      const count = open.get(network) ?? 0
      if (count >= connections_max) return false
      open.set(network, count + 1)
      socket.once('close', () => {
        const left = (open.get(network) ?? 1) - 1
        if (left > 0) open.set(network, left)
        else open.delete(network)
      })
      return true
    },
  }
}

const groups_of_network = 4

/** As node writes addresses: in lower case, the longest run of zeros left out. */
export function networkOf(address: string): string {
  const [, v4] = /^::ffff:([0-9.]+)$/.exec(address) ?? []
  if (v4 !== undefined || !address.includes(':')) return v4 ?? address
  const [head = '', tail] = (address.split('%')[0] as string).split('::')
  const groups = head === '' ? [] : head.split(':')
  if (tail !== undefined) {
    const behind = tail === '' ? [] : tail.split(':')
    while (groups.length + behind.length < 2 * groups_of_network) groups.push('0')
    groups.push(...behind)
  }
  return groups.slice(0, groups_of_network).join(':')
}
