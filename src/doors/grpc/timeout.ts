/** The time a caller gives its call, as the header `grpc-timeout` says it. */

const unit_ms: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1_000,
  m: 1,
  u: 1e-3,
  n: 1e-6,
}

/** In whole milliseconds; undefined where the text says no time. */
export function timeoutOf(text: string): number | undefined {
  const [, digits, unit = ''] = /^(\d{1,8})([HMSmun])$/.exec(text) ?? []
  const ms = unit_ms[unit]
  return ms === undefined ? undefined : Math.floor(Number(digits) * ms)
}
