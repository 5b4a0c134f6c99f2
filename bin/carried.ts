/**
 * The packages whose files `npm run build` puts into what it ships, so that users do not install them:
 * their folders in node_modules, and the notices that their licences ask for.
 */
import { cpSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { libraryFiles } from '../src/executors/code-library-files.ts'
import { addon_package } from './lock-addons.ts'
import { bundlePage } from './page-bundle.ts'
import { bundleVendored } from './vendor.ts'

interface Manifest {
  readonly name: string
  readonly version: string
  readonly license: string
  readonly author: string
  readonly repository?: string | { readonly url: string }
}

/** The files of the libraries that code may require, from `top`. */
export const code_library_paths = Object.values(libraryFiles).map((file) => `node_modules/${file}`)

/** Where src/executors/code-script looks for them. */
export function copyCodeLibraries(top: string, folder: string): void {
  mkdirSync(folder, { recursive: true })
  for (const [name, file] of Object.entries(libraryFiles)) {
    cpSync(join(top, 'node_modules', file), join(folder, `${name}.js`))
  }
}

/** The folders of all carried packages, from `top`. */
export async function carriedFolders(top: string): Promise<string[]> {
  const page = (await bundlePage(top, top)).packages
  const { inputs } = await bundleVendored(top)
  const whole = [...page, addon_package].map((name) => `node_modules/${name}`)
  return [...new Set([...whole, ...packageFolders([...code_library_paths, ...inputs])])].sort()
}

/** The folders of the packages that these files are of. */
export function packageFolders(paths: readonly string[]): string[] {
  const pattern = /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/
  return [...new Set(paths.flatMap((path) => pattern.exec(path) ?? []))].sort()
}

export function manifestOf(top: string, folder: string): Manifest {
  return JSON.parse(readFileSync(join(top, folder, 'package.json'), 'utf8'))
}

/** A text for each distinct licence, with the packages that it covers. */
export function noticesOf(top: string, folders: readonly string[]): string[] {
  const byText = new Map<string, string[]>()
  for (const folder of folders) {
    const manifest = manifestOf(top, folder)
    const file = readdirSync(join(top, folder)).find((one) => /^licen[cs]e/i.test(one))
    const licence =
      file === undefined ? licenceOf(manifest) : readFileSync(join(top, folder, file), 'utf8')
    const text = licence.replaceAll('\r', '').trim()
    byText.set(text, [...(byText.get(text) ?? []), titleOf(manifest)])
  }
  return [...byText].map(([text, titles]) => `Contains ${titles.join(', ')}:\n\n${text}\n`)
}

/** With the source, which EPL-2.0 wants named where a package is shipped compiled. */
function titleOf({ name, version, license, repository }: Manifest): string {
  if (!license.startsWith('EPL')) return `${name} ${version}`
  const { url = repository } = Object(repository) as { url?: string }
  return `${name} ${version} (${license}; source code at ${url})`
}

/** The text of a licence that a package only names. */
function licenceOf({ name, license, author }: Manifest): string {
  const grant = grants[license]
  if (grant === undefined) throw new Error(`${name} has no licence to carry along`)
  return [`${license} License, copyright ${author}`, ...grant, disclaimer].join('\n')
}

const grants: Readonly<Record<string, readonly string[]>> = {
  ISC: [
    'Permission to use, copy, modify, and/or distribute this software for any purpose with or',
    'without fee is hereby granted, provided that the above copyright notice and this permission',
    'notice appear in all copies.',
  ],
  MIT: [
    'Permission is hereby granted, free of charge, to any person obtaining a copy of this software',
    'and associated documentation files (the "Software"), to deal in the Software without',
    'restriction, including without limitation the rights to use, copy, modify, merge, publish,',
    'distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the',
    'Software is furnished to do so, subject to the following conditions: the above copyright',
    'notice and this permission notice shall be included in all copies or substantial portions of',
    'the Software.',
  ],
}

const disclaimer = [
  'THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES WITH REGARD TO THIS',
  'SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL',
  'THE AUTHOR BE LIABLE FOR ANY SPECIAL, DIRECT, INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY',
  'DAMAGES WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN ACTION OF',
  'CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF OR IN CONNECTION WITH THE USE',
  'OR PERFORMANCE OF THIS SOFTWARE.',
].join('\n')
