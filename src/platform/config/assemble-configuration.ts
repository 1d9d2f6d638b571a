import { join, resolve } from "node:path";
import type { z } from "zod";
import { readTracingSettings } from "../telemetry/tracing-settings.ts";
import type { Configuration } from "./configuration.ts";
import type { EnvironmentSettings } from "./environment-settings.ts";
import type { Environment } from "./expand-references.ts";
import type { FileSettings } from "./file-schema.ts";

export interface ConfigurationParts<Provider extends z.ZodType> {
  environment: Environment;
  workingDirectory: string;
  variables: EnvironmentSettings;
  file: FileSettings<Provider>;
}

/** Puts the two sources together: the environment wins over the file, the file over the defaults. */
export function assembleConfiguration<Provider extends z.ZodType>(
  { environment, workingDirectory, variables, file }: ConfigurationParts<Provider>,
): Configuration<z.output<Provider>> {
  const dataDirectory = resolve(workingDirectory, variables.dataDirectory ?? "data");
  const storageUrl = variables.storageUrl ?? file.storage?.url ?? `sqlite:${join(dataDirectory, "switchyard.db")}`;
  return {
    server: {
      host: variables.host ?? file.server?.host ?? "127.0.0.1",
      port: variables.port ?? file.server?.port ?? 8787,
      publicUrl: variables.publicUrl ?? file.server?.public_url,
      trustProxy: file.server?.trust_proxy ?? false,
    },
    dataDirectory,
    storage: {
      url: absoluteStorageUrl(storageUrl, workingDirectory),
      embedded: storageUrl.startsWith("sqlite:"),
      durability: file.storage?.durability ?? "power",
    },
    shared: { url: variables.sharedUrl ?? file.shared?.url ?? "memory:" },
    archive: { url: variables.archiveUrl ?? file.archive?.url ?? "none" },
    retention: {
      generationsDays: file.retention?.generations_days ?? 90,
      responsesDays: file.retention?.responses_days ?? 30,
      logBudgetGb: file.retention?.log_budget_gb ?? 10,
    },
    disconnect: file.disconnect ?? "abort",
    providers: file.providers ?? [],
    sandbox: { enabled: file.sandbox?.enabled ?? "auto" },
    routers: mapValues(file.routers ?? {}, ({ members, quality }) => ({ members, quality: quality ?? [] })),
    plans: mapValues(file.plans ?? {}, ({ per_minute, five_hour }) => ({ perMinute: per_minute, fiveHour: five_hour })),
    encryptionKey: variables.encryptionKey,
    metricsPort: variables.metricsPort,
    bootstrap: { ...variables.bootstrap, plan: variables.bootstrap.plan ?? "enterprise" },
    tracing: tracingSettings(environment),
    logLevel: variables.logLevel ?? "info",
  };
}

function tracingSettings(environment: Environment): Configuration<unknown>["tracing"] {
  const { endpoint, headers = {}, serviceName } = readTracingSettings(environment);
  return { ...(endpoint === undefined ? {} : { endpoint }), headers, serviceName };
}

function absoluteStorageUrl(url: string, workingDirectory: string): string {
  return url.startsWith("sqlite:") ? `sqlite:${resolve(workingDirectory, url.slice("sqlite:".length))}` : url;
}

function mapValues<From, To>(
  record: Readonly<Record<string, From | undefined>>,
  map: (value: From) => To,
): Record<string, To> {
  const entries = Object.entries(record);
  return Object.fromEntries(entries.flatMap(([key, value]) => (value === undefined ? [] : [[key, map(value)]])));
}
