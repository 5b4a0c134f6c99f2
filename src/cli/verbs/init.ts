/**
 * `init [DIR]`: writes a small service to start from. A file that is there is never changed: one of
 * the service's refuses the whole, and a `package.json` stays as it is.
 */
import { existsSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { basename, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { fault } from '../../core/faults.ts'
import { version } from '../../core/version.ts'
import { fileFault } from '../../store/disk/file-system.ts'
import { printDone } from '../output.ts'
import { shellWord } from '../program.ts'
import { clean, linesText } from '../text.ts'
import { json_flag, verbOf } from '../verb.ts'

export const initVerb = verbOf('init [DIR]', {
  flags: [json_flag],
  says: 'write a small service to start from, with its test',
  notes: [
    'Makes order.mjs (a process and its handler), service.mjs, order.test.mjs and Containerfile in',
    'DIR (default: here), and package.json where there is none. It replaces no file.',
  ],
  async run(given, io) {
    const folder = resolve(given.words[0] ?? '.')
    const [is_checkout, from] = sourceOf(import.meta.url)
    const files = await starterFiles(packageName(folder), from)
    const has_manifest = existsSync(join(folder, 'package.json'))
    const wanted = [...files].filter(([name]) => name !== 'package.json' || !has_manifest)
    const there = wanted.map(([name]) => name).filter((name) => existsSync(join(folder, name)))
    if (there.length > 0) {
      throw fault('not_possible', `${folder} has ${there.join(', ')}: name an empty folder`)
    }
    try {
      await mkdir(folder, { recursive: true })
      for (const [name, text] of wanted) await writeFile(join(folder, name), text, { flag: 'wx' })
    } catch (error) {
      throw fileFault(folder, error)
    }
    const made = wanted.map(([name]) => name)
    const place = relative('.', folder)
    const next = [
      ...(is_checkout ? ['npm run build'] : []),
      ...(place === '' ? [] : [`cd ${shellWord(place)}`]),
      ...(has_manifest && existsSync(join(folder, 'node_modules/conveyor-engine'))
        ? []
        : [has_manifest ? `npm install ${from}` : 'npm install']),
      'node --test',
      'node service.mjs',
    ]
    const text = linesText([
      `${clean(folder)}: ${made.join(' ')}`,
      ...['', 'Next:', ...next.map((line) => `  ${line}`)],
      ...['', 'While it runs, make an order and pay it:'],
      '  curl -X POST http://127.0.0.1:8080/order-1',
      '  curl -X PUT http://127.0.0.1:8080/order-1',
    ])
    return printDone(given, io, { folder, files: made, next }, text)
  },
})

/** They end in `.mjs`, so they run whatever a `package.json` says of modules. */
const starter_names = ['order.mjs', 'service.mjs', 'order.test.mjs', 'Containerfile']

async function starterFiles(name: string, from: string): Promise<ReadonlyMap<string, string>> {
  const manifest = {
    ...{ name, version: '1.0.0', private: true, type: 'module' },
    scripts: { start: 'node service.mjs', test: 'node --test' },
    dependencies: { 'conveyor-engine': from },
  }
  const files = new Map([['package.json', `${JSON.stringify(manifest, null, 2)}\n`]])
  for (const name of starter_names) {
    files.set(name, await readFile(new URL(`../starter/${name}`, import.meta.url), 'utf8'))
  }
  return files
}

/** Whether this is a checkout, and what npm installs the engine from. */
function sourceOf(module: string): [boolean, string] {
  return module.endsWith('.ts')
    ? [true, `file:${fileURLToPath(new URL('../../..', module)).replace(/[/\\]$/, '')}`]
    : [false, `^${version}`]
}

/** A name that npm takes, from that of the folder. */
function packageName(folder: string): string {
  const name = basename(folder)
    .toLowerCase()
    .replaceAll(/[^a-z0-9-]+/g, '-')
    .replaceAll(/^-+|-+$/g, '')
  return name === '' || name === 'conveyor-engine' ? 'orders' : name
}
