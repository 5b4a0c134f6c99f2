/**
 * Traces by OpenTelemetry, for embedders: `conveyor-engine/tracing`. It needs the package
 * `@opentelemetry/api`, and an SDK that the program registers; tracing/README tells how.
 */
export type { TraceContext, Tracing } from './core/tracing.ts'
export { type OpenTelemetryOptions, openTelemetryTracing } from './tracing/opentelemetry.ts'
