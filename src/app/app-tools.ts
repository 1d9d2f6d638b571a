import { type ProbeKey } from "../account/byok/key-prober.ts";
import type { ConverterPoolOptions } from "../documents/converter/converter-pool.ts";
import type { RunBackground } from "../inference/stored-responses/background-job.ts";
import type { SmokePort } from "../insights/health/smoke-tests.ts";
import type { BuildMcpServer } from "../mcp/mcp-service.ts";
import { type Clock } from "../platform/lib/clock.ts";
import type { Logger } from "../platform/telemetry/logger.ts";
import type { Metrics } from "../platform/telemetry/metrics.ts";
import type { Tracing } from "../platform/telemetry/tracing.ts";

/** Tools that outlive the app's own parts and are given to it. */
export interface AppTools {
  logger: Logger;
  metrics: Metrics;
  tracing: Tracing;
  clock?: Clock;
  random?: () => number;
  /** Does the work of background responses in place of the inference. */
  runBackground?: RunBackground;
  /** Changes to the children that convert files. */
  converterPool?: Partial<ConverterPoolOptions>;
  /** Asks providers about keys in place of a request to them. */
  probeKey?: ProbeKey;
  /** Makes the server behind `/mcp` in place of the one with this service's tools. */
  buildMcpServer?: BuildMcpServer;
  /** Asks providers for smoke tests in place of the inference. */
  smoke?: SmokePort | undefined;
}
