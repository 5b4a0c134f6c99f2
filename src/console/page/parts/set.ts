/** Sets a signal, for handlers of elements, which return nothing. */
import type { Signal } from '@preact/signals'

export function set<T>(signal: Pick<Signal<T>, 'value'>, value: T): void {
  signal.value = value
}
