/**
 * `serve --traces`: spans go to the OpenTelemetry SDK that the process has registered, by
 * `node --import`. The package of its interface is the operator's to install.
 */
import type { Tracing } from '../../core/tracing.ts'
import { usageError } from '../exit-codes.ts'
import { type Flag, flag } from '../flag.ts'
import { type Given, isOn } from '../verb.ts'

export const traces_flag: Flag = flag(
  'traces',
  'make spans for the OpenTelemetry SDK that `node --import` has registered (default off)',
)

/** Undefined without the flag. Refuses it where the package is not installed. */
export async function tracingOf(given: Given): Promise<Tracing | undefined> {
  if (!isOn(given, 'traces')) return undefined
  try {
    const { openTelemetryTracing } = await import('../../tracing/opentelemetry.ts')
    return openTelemetryTracing()
  } catch (error) {
    const { code } = error as { code?: unknown }
    if (code !== 'ERR_MODULE_NOT_FOUND' && code !== 'MODULE_NOT_FOUND') throw error
    throw usageError('--traces needs @opentelemetry/api: `npm install @opentelemetry/api`')
  }
}
