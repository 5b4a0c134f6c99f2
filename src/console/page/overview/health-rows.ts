/**
 * The health of a server as rows that an operator reads: a word that says whether it is fine, the
 * figure, and where it is not fine what is wrong and what helps. Pure.
 */
import { health_checks } from '../../../core/health-checks.ts'
import type { Health } from '../../overview/messages.ts'
import { bytesText, countText, durationText, rateText, sentenceText } from '../parts/texts.ts'

export interface HealthRow {
  readonly name: string
  /** `soon`: it works, and will not for ever. */
  readonly state: 'fine' | 'soon' | 'wrong'
  /** In place of the state, where a word says it better. */
  readonly word?: string
  readonly figure: string
  /** What is wrong, and what helps. */
  readonly helps?: string
}

const renew = sentenceText(health_checks.certificate.helps)

export function healthRows(health: Health, now_ms: number): readonly HealthRow[] {
  return [
    commits(health),
    queue(health),
    timers(health),
    jobs(health),
    disk(health),
    ...certificates(health, now_ms),
    key(health),
    ...others(health),
  ]
}

function commits({ checks, commit_ms }: Health): HealthRow {
  const name = 'Commits'
  const figure =
    commit_ms === undefined
      ? 'none lately'
      : `${msText(commit_ms.p50)}, 1 % over ${msText(commit_ms.p99)}`
  const failed = [checks.commit, checks.commit_log, checks.open].find((one) => one?.ok === false)
  // A full disk has its own row, and is why no commit was tried.
  if (failed !== undefined && checks.disk?.ok !== false) {
    const helps = `${reasonOf(failed)} ${sentenceText(health_checks.commit.helps)}`
    return { name, state: 'wrong', figure, helps }
  }
  if (failed !== undefined) return { name, state: 'wrong', figure, helps: 'The disk is full.' }
  if (commit_ms !== undefined && commit_ms.p99 > health_checks.commit.slow_ms_min) {
    const helps = sentenceText(health_checks.commit.slow_helps)
    return { name, state: 'soon', word: 'slow', figure, helps }
  }
  return { name, state: 'fine', figure }
}

function queue({ checks, queue }: Health): HealthRow {
  const figure = `${countText(queue.ops)} ops, ${bytesText(queue.bytes)}`
  if (checks.queue?.ok !== false) return { name: 'Queue', state: 'fine', figure }
  const helps = sentenceText(health_checks.queue.helps)
  return { name: 'Queue', state: 'wrong', word: 'full', figure, helps }
}

function timers({ checks, due_lag_ms }: Health): HealthRow {
  const name = 'Timers'
  const figure = due_lag_ms < 1_000 ? 'on time' : `${durationText(due_lag_ms)} late`
  if (checks.background?.ok === false) {
    return { name, state: 'wrong', word: 'stopped', figure, helps: reasonOf(checks.background) }
  }
  if (due_lag_ms < health_checks.timers.late_ms_min) return { name, state: 'fine', figure }
  const helps = sentenceText(health_checks.timers.late_helps)
  return { name, state: 'soon', word: 'late', figure, helps }
}

function jobs({ jobs }: Health): HealthRow {
  const { in_flight, waiting } = jobs
  const figure = `${countText(in_flight)} under way, ${countText(waiting)} waiting`
  return { name: 'Jobs', state: 'fine', figure }
}

function disk({ checks, disk_free_bytes, file_bytes }: Health): HealthRow {
  const name = 'Disk'
  const file = `file ${bytesText(file_bytes)}`
  const figure =
    disk_free_bytes === undefined ? file : `${bytesText(disk_free_bytes)} free · ${file}`
  if (checks.disk?.ok === false) {
    const helps = `${reasonOf(checks.disk)} ${sentenceText(health_checks.disk.helps)}`
    return { name, state: 'wrong', word: 'full', figure, helps }
  }
  if (checks.disk?.reason !== undefined) {
    return { name, state: 'soon', word: 'slow', figure, helps: reasonOf(checks.disk) }
  }
  if (disk_free_bytes === undefined || disk_free_bytes >= health_checks.disk.low_bytes) {
    return { name, state: 'fine', figure }
  }
  return {
    name,
    state: 'soon',
    word: 'low',
    figure,
    helps: sentenceText(health_checks.disk.low_helps),
  }
}

function certificates({ certificates_until_ms }: Health, now_ms: number): HealthRow[] {
  const [first] = Object.entries(certificates_until_ms).toSorted(([, one], [, two]) => one - two)
  if (first === undefined) return []
  const [whose, until_ms] = first
  const name = 'Certificates'
  const left_ms = until_ms - now_ms
  if (left_ms <= 0) {
    const figure = `${whose}: ended ${durationText(-left_ms)} ago`
    const helps = `${sentenceText(health_checks.certificate.ended_helps)} ${renew}`
    return [{ name, state: 'wrong', word: 'ended', figure, helps }]
  }
  const figure = `${whose}: ${durationText(left_ms)} left`
  if (left_ms > health_checks.certificate.left_ms_min) return [{ name, state: 'fine', figure }]
  return [{ name, state: 'soon', word: 'ends soon', figure, helps: renew }]
}

function key({ checks, key_problem }: Health): HealthRow {
  const name = 'Key of secrets'
  const { ok = true, reason } = checks.key ?? {}
  if (!ok || key_problem !== undefined) {
    const helps = key_problem ?? reasonOf(checks.key)
    return { name, state: 'wrong', figure: 'secrets cannot be read', helps }
  }
  if (reason === undefined) return { name, state: 'fine', figure: 'secrets can be read' }
  return { name, state: 'soon', word: 'look', figure: 'works until the next start', helps: reason }
}

const with_row = new Set(['open', 'commit', 'commit_log', 'queue', 'background', 'disk', 'key'])

/** Checks without a figure: a row only while they fail. */
function others({ checks }: Health): HealthRow[] {
  return Object.entries(checks)
    .filter(([name, { ok }]) => !ok && !with_row.has(name))
    .map(([name, check]) => ({ name, state: 'wrong', figure: '', helps: reasonOf(check) }))
}

function reasonOf(check: { readonly reason?: string } | undefined): string {
  return sentenceText(check?.reason ?? 'it does not work')
}

const msText = (ms: number): string => `${rateText(ms)} ms`
