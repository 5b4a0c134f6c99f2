/**
 * `npm run page [-- FOLDER]`: bundles the operator's page from src/console/page into FOLDER, by default
 * `src/console/page/built`, from where a checkout serves it; the package ships it in the same place. The
 * licences of the packages in it stand at its end.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { bundlePage } from './page-bundle.ts'

const top = fileURLToPath(new URL('..', import.meta.url))
const folder = resolve(process.argv[2] ?? join(top, 'src/console/page/built'))

const { files, packages } = await bundlePage(top, folder)
const licences = packages.map(
  (name) => `/*! ${name}\n${readFileSync(join(top, 'node_modules', name, 'LICENSE'))}*/\n`,
)
mkdirSync(folder, { recursive: true })
for (const { path, contents } of files) {
  const end = basename(path) === 'page.js' ? licences.join('') : ''
  writeFileSync(path, Buffer.concat([contents, Buffer.from(end)]))
}
