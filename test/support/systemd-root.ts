/**
 * Boots the systemd of an unpacked root in a container of systemd-nspawn, on a network of its
 * own, and runs commands inside. Needs root.
 */
import assert from 'node:assert/strict'
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

export interface Machine {
  /** Runs a command to its end and answers what it printed; throws where it fails. */
  exec(words: readonly string[]): string
  end(): Promise<void>
}

export async function bootRoot(root: string): Promise<Machine> {
  const flags = ['--quiet', '--register=no', '--keep-unit', '--private-network', '--boot']
  const child = spawn('systemd-nspawn', [...flags, `--directory=${root}`], { stdio: 'ignore' })
  const ended = once(child, 'exit')
  const command = (words: readonly string[]): string[] => {
    const children = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8')
    const path = 'PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
    return ['-t', children.trim().split(' ')[0] as string, '-a', 'env', '-i', path, ...words]
  }
  let state = ''
  for (let n = 0; n < 300 && !/running|degraded/.test(state); n++) {
    await sleep(100)
    try {
      const asked = command(['systemctl', 'is-system-running'])
      state = spawnSync('nsenter', asked, { encoding: 'utf8' }).stdout
    } catch {
      // The first process of the container is not there yet.
    }
  }
  assert.match(state, /running|degraded/, 'the root does not boot')
  return {
    exec: (words) => execFileSync('nsenter', command(words), { encoding: 'utf8' }),
    async end() {
      child.kill('SIGTERM')
      await ended
    },
  }
}
