/**
 * Traces by OpenTelemetry, for embedders: `conveyor-engine/tracing`. It needs the package
 * `@opentelemetry/api`, and an SDK that the program registers; see tracing/README.
 */
export type { TraceContext, Tracing } from './core/tracing.ts'
export { type OpenTelemetryOptions, openTelemetryTracing } from './tracing/opentelemetry.ts'
