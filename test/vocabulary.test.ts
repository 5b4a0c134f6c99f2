/**
 * One word for one thing, and the field's own word for it: names that this code once invented do
 * not come back, neither in the source nor in tests, comments or READMEs.
 */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { top } from './support/package-folder.ts'

/** [what is not said, what is said instead] */
const words: readonly (readonly [RegExp, string])[] = [
  [/\bdoors?\b|[dD]oor[A-Z]|[a-z]Doors?\b/, 'server'],
  [/\bdoers?\b|Doers?\b/, 'executor'],
  [/\bsheets?\b|Sheet\b/, 'change buffer, write batch'],
  [/\bshel(f|ves)\b|Shel(f|ves)\b/, 'sorted index'],
  [/\babsence\b|Absence\b/, 'Bloom filter'],
  [/\bplace-?table\b|PlaceTable\b/i, 'hash index'],
  [/\bturnOver\b/, 'rotate'],
  [/\bfold(ed|s|ing)?[ -]in\b/, 'checkpoint'],
  [/\bmergers?\b|Merger\b/, 'checkpointer'],
  [/\bagenda\b/i, 'run queue'],
  [/\borphans?\b/i, 'unanswered caller'],
  [/\btall(y|ies)\b/i, 'counters'],
  [/\bworkspaces?\b/i, 'transaction context'],
  [/\bhomeless\b/i, 'in a dropped node'],
  [/\bstranded\b/i, 'in a dropped node'],
  [/\brelocat(e|es|ed|ion|ions|ing)\b/i, 'migrate'],
  [/\bshelved\b/i, 'quarantined'],
  [/\binbox\b/i, 'message reader'],
  [/\bTold\b|\bTalk\b/, 'callbacks'],
  [/\bEnder\b/, 'onCancel'],
  [/\bbells?\b/i, 'notifier'],
  [/\blast_words\b|\bsurplus\b/, 'final error, over the limit'],
  [/\bunborn\b/i, 'uninitialised'],
  [/\bstrangers?\b/i, 'foreign'],
  [/\bputBy\b/, 'park'],
  [/\btakeoff\b|\bflying\b/i, 'flush, in flight'],
]

/** Not in what users and maintainers read; tests still have some. [what is not said, instead] */
const prose: readonly (readonly [RegExp, string])[] = [
  [/\btold(?!')\b|\btells?\b|\btellers?\b|\btell[A-Z]|[a-z]Told\b/, 'emit, log, say, return'],
  [/\banew\b/, 'again'],
  [/\bwhoever\b|\bthose who\b|\bsomebody\b/, 'the caller, a user, an operator'],
  [/\bwhich is no\b|\bthat is none\b/, 'is not'],
  [/\bstands? for itself\b|\bpicture of the screen\b/, 'frame'],
]

const texts = ['src', 'bin', 'test', 'proto', 'deploy']
  .flatMap((folder) =>
    readdirSync(join(top, folder), { recursive: true, encoding: 'utf8' }).map((name) =>
      join(folder, name),
    ),
  )
  .concat('README.md', 'SECURITY.md', 'package.json', '.ci/run')
  .filter((name) => /\.(ts|md|sh|proto|json)$|run$/.test(name))
  .filter((name) => name !== 'test/vocabulary.test.ts' && !name.includes('/generated/'))
  .map((name) => ({ name, lines: readFileSync(join(top, name), 'utf8').split('\n') }))

for (const [word, instead] of words) {
  test(`${word.source} is called: ${instead}`, () => {
    const found = texts.flatMap(({ name, lines }) =>
      lines.flatMap((line, at) => (word.test(line) ? [`${name}:${at + 1}: ${line.trim()}`] : [])),
    )
    assert.deepEqual(found, [])
  })
}

for (const [word, instead] of prose) {
  test(`outside tests, ${word.source} is called: ${instead}`, () => {
    const found = texts.flatMap(({ name, lines }) =>
      name.startsWith('test/')
        ? []
        : lines.flatMap((line, at) => (word.test(line) ? [`${name}:${at + 1}: ${line}`] : [])),
    )
    assert.deepEqual(found, [])
  })
}

/** `log` alone; a word before it says that it is of commits, or of changes. */
const bare_log = /(?<!commit |change |[\w.'/-])[Ll]ogs?\b(?![-_(/'.]\w)/
/** What speaks of the store: all of its files and tests, and elsewhere the lines that name it. */
const about_store = /^(src\/store|test\/(support\/)?(commit-log|store|power|crash|sync))/
const names_store = /\b(checkpoint|recover|commits?\b|LMDB|segments?\b|crash|synced|data file)/i

test('the log of the store is called: commit log, because a log is one of lines', () => {
  const found = texts.flatMap(({ name, lines }) =>
    lines.flatMap((line, at) => {
      const own = lines[at - 1]?.endsWith(' commit') === true ? line.replace('log', '') : line
      const is_store = about_store.test(name) || names_store.test(line)
      return is_store && bare_log.test(own) ? [`${name}:${at + 1}: ${line.trim()}`] : []
    }),
  )
  assert.deepEqual(found, [])
})
