/**
 * `conveyor-engine/metrics`: what an engine does, as metrics of Prometheus, for programs that have
 * a register of prom-client of their own. `serve` and `serveOperator` have them at `/metrics`.
 */
export {
  type EngineMetrics,
  type EngineMetricsOptions,
  engineMetrics,
} from './metrics/engine-metrics.ts'
export { nodeMetrics } from './metrics/node-metrics.ts'
