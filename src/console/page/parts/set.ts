import type { Signal } from '@preact/signals'

/** For handlers that set one signal and return nothing. */
export function set<T>(signal: Pick<Signal<T>, 'value'>, value: T): void {
  signal.value = value
}
