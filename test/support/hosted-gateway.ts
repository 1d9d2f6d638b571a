import { createApp } from "../../src/app/create-app.ts";
import { appSettings, readConfiguration } from "../../src/app/settings-of.ts";
import { HttpServer } from "../../src/http/http-server.ts";
import { createLogger } from "../../src/platform/telemetry/logger.ts";
import { createMetrics } from "../../src/platform/telemetry/metrics.ts";
import { noTracing } from "../../src/platform/telemetry/tracing.ts";
import { makePlace, type ProcessOptions } from "./process.ts";

/** A gateway in the process of the tests, with the settings of its variables and its file. */
export interface HostedGateway {
  /** `http://127.0.0.1:PORT`. */
  url: string;
  /** The lines that it logged. */
  logLines: readonly string[];
  /** Ends it, where it has not ended yet. */
  stop(): Promise<void>;
}

/**
 * Starts a gateway from the configuration that `startProcess` takes, for tests that neither end nor
 * suspend it: it costs a quarter of a process of its own.
 */
export async function hostGateway(
  options: Omit<ProcessOptions, "command">,
): Promise<HostedGateway> {
  const { workingDirectory, environment } = makePlace(options);
  const configuration = await readConfiguration({ environment, workingDirectory });
  const logLines: string[] = [];
  let url = "";
  const app = await createApp(
    appSettings(configuration, { version: "0.0.0-test", publicUrl: () => url }),
    {
      logger: createLogger({ level: "info", write: (line) => void logLines.push(line) }),
      metrics: createMetrics({ usage: configuration.telemetry.usage }),
      tracing: noTracing,
    },
  );
  const server = new HttpServer({
    host: "127.0.0.1",
    port: 0,
    ...app,
    bodyMemoryBytes: configuration.server.bodyMemoryBytes,
    onError: (error) => void logLines.push(`an answer could not be written: ${String(error)}`),
  });
  url = `http://127.0.0.1:${server.port}`;
  let isStopped: Promise<void> | undefined;
  return {
    url,
    logLines,
    async stop() {
      isStopped ??= server.stop(true).then(() => app.close());
      await isStopped;
    },
  };
}
