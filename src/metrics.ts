/**
 * `conveyor-engine/metrics`: the metrics of an engine in your own register of prom-client. `serve`
 * and `serveOperator` serve them at `/metrics`.
 */
export {
  type EngineMetrics,
  type EngineMetricsOptions,
  engineMetrics,
} from './metrics/engine-metrics.ts'
export { nodeMetrics } from './metrics/node-metrics.ts'
