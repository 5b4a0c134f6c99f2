/** What `npm run release:check` finds before a person publishes. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { type ReleaseFacts, releaseChecks } from '../bin/release-checks.ts'
import { top } from './support/package-folder.ts'

const manifest = {
  ...{ name: 'conveyor-engine', version: '1.2.0', dependencies: { lmdb: '3.5.6' } },
  publishConfig: { access: 'public', provenance: true },
  repository: { url: 'git+https://example.org/conveyor.git' },
}
const sbom = (version: string, components: object[]) =>
  JSON.stringify({ metadata: { component: { name: 'conveyor-engine', version } }, components })
const files = [
  ...['CHANGELOG.md', 'LICENSE', 'README.md', 'SECURITY.md', 'package.json'],
  ...['dist/bin/conveyor.js', 'dist/bin/conveyor-engine.js', 'dist/src/index.js'],
  ...['dist/src/index.d.ts', 'dist/src/console/page/built/page.js'],
  ...['dist/THIRD-PARTY-NOTICES.txt', 'dist/sbom.cdx.json'],
]
const ready: ReleaseFacts = {
  manifest,
  versions: { source: '1.2.0', lock: '1.2.0' },
  changelog: '# Changes\n\n## 1.2.0, 2026-12-01\n\nNew.\n\n## 1.1.0, 2026-11-01\n\nOld.\n',
  ...{ changed: [], tags: ['v1.1.0'], digests: ['a', 'a'] },
  tarball: { files, bytes: 2e6, bytes_unpacked: 8e6 },
  sbom: sbom('1.2.0', [{ name: 'lmdb', version: '3.5.6' }]),
}

/** [what is different, the check that finds it, what it says] */
// biome-ignore format: a table
const rows: readonly (readonly [Partial<ReleaseFacts>, string, RegExp])[] = [
  [{ versions: { source: '1.1.0', lock: '1.2.0' } },        'version',    /the source has 1\.1\.0/],
  [{ versions: { source: '1.2.0', lock: '1.1.0' } },        'version',    /the lock has 1\.1\.0/],
  [{ tags: ['v1.2.0'] },                                    'version',    /raise the version/],
  [{ changelog: '## 1.2.0, not published\n\nNew.\n' },      'changelog',  /needs a section "## 1\.2\.0/],
  [{ changelog: '## 1.2.01, 2026-12-01\n\nNew.\n' },        'changelog',  /needs a section "## 1\.2\.0/],
  [{ changelog: '## 1.2.0, 2026-12-01\n\n## 1.1.0\n' },     'changelog',  /is empty/],
  [{ changed: ['M src/a.ts'] },                             'tree',       /M src\/a\.ts/],
  [{ tarball: { ...ready.tarball, files: files.slice(1) } },'tarball',    /lacks CHANGELOG\.md/],
  [{ tarball: { ...ready.tarball, files: [...files, 'deploy/ca.key'] } }, 'tarball', /has deploy\/ca\.key/],
  [{ tarball: { ...ready.tarball, bytes: 3.1e6 } },         'tarball',    /packed it has 3\.1 MB/],
  [{ tarball: { ...ready.tarball, bytes_unpacked: 13e6 } }, 'tarball',    /unpacked it has 13\.0 MB/],
  [{ digests: ['a', 'b'] },                                 'tarball',    /different bytes/],
  [{ manifest: { ...manifest, publishConfig: { access: 'public' } } }, 'provenance', /provenance to true/],
  [{ manifest: { ...manifest, publishConfig: { provenance: true } } }, 'provenance', /access to public/],
  [{ manifest: { ...manifest, repository: {} } },           'provenance', /set repository\.url/],
  [{ manifest: { ...manifest, private: true } },            'provenance', /is private/],
  [{ sbom: sbom('1.2.0', []) },                             'SBOM',       /lacks lmdb@3\.5\.6/],
  [{ sbom: sbom('1.1.0', [{ name: 'lmdb', version: '3.5.6' }]) }, 'SBOM', /of conveyor-engine@1\.1\.0/],
]

const found = (facts: ReleaseFacts) =>
  releaseChecks.flatMap(([what, check]) => check(facts).map((text) => [what, text] as const))

test('a package that is ready has nothing wrong', () => assert.deepEqual(found(ready), []))

for (const [change, what, says] of rows) {
  test(`${what}: ${says.source}`, () => {
    const all = found({ ...ready, ...change })
    assert.equal(all.length, 1, JSON.stringify(all))
    assert.equal(all[0]?.[0], what)
    assert.match(all[0]?.[1] ?? '', says)
  })
}

test('the package has the settings that npm publishes with', () => {
  const { publishConfig } = JSON.parse(readFileSync(join(top, 'package.json'), 'utf8'))
  assert.deepEqual(publishConfig, { access: 'public', provenance: true })
})
