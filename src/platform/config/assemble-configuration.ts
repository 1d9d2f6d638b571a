import { join, resolve } from "node:path";
import type { z } from "zod";
import { nanoFromUsd } from "../lib/money.ts";
import { readTracingSettings } from "../telemetry/tracing-settings.ts";
import type { Configuration } from "./configuration.ts";
import { effectiveSettings } from "./effective-settings.ts";
import type { EnvironmentSettings } from "./environment-settings.ts";
import type { Environment } from "./expand-references.ts";
import type { FileSettings } from "./file-schema.ts";
import { assembleMail } from "./mail-schema.ts";
import { assemblePayments } from "./payments-schema.ts";
import { assembleReferrals } from "./referrals-schema.ts";

export interface ConfigurationParts<Provider extends z.ZodType> {
  environment: Environment;
  workingDirectory: string;
  variables: EnvironmentSettings;
  file: FileSettings<Provider>;
}

/** Eight of the largest bodies at once, in mebibytes. */
const bodyMemoryMb = 256;

/** Puts the two sources together: the environment wins over the file, the file over the defaults. */
export function assembleConfiguration<Provider extends z.ZodType>({
  environment,
  workingDirectory,
  variables,
  file,
}: ConfigurationParts<Provider>): Configuration<z.output<Provider>> {
  const dataDirectory = resolve(workingDirectory, variables.dataDirectory ?? "data");
  const storageUrl =
    variables.storageUrl ?? file.storage?.url ?? `sqlite:${join(dataDirectory, "switchyard.db")}`;
  const tls = file.server?.tls;
  const settings = {
    server: {
      host: variables.host ?? file.server?.host ?? "127.0.0.1",
      port: variables.port ?? file.server?.port ?? 8787,
      publicUrl: variables.publicUrl ?? file.server?.public_url,
      trustProxy: file.server?.trust_proxy ?? false,
      ...(tls === undefined
        ? {}
        : {
            tls: {
              certPath: resolve(workingDirectory, tls.cert),
              keyPath: resolve(workingDirectory, tls.key),
            },
          }),
      bodyMemoryBytes: (file.server?.body_memory_mb ?? bodyMemoryMb) * 1024 ** 2,
      drainDelayMs: file.server?.drain_delay_ms ?? 250,
      drainGraceMs: file.server?.drain_grace_ms ?? 30_000,
    },
    dataDirectory,
    storage: {
      url: absoluteStorageUrl(storageUrl, workingDirectory),
      embedded: storageUrl.startsWith("sqlite:"),
      durability: file.storage?.durability ?? "power",
      waitMs: (file.storage?.wait_s ?? 30) * 1_000,
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
    catalog: {
      factsPath:
        file.catalog?.facts === undefined
          ? undefined
          : resolve(workingDirectory, file.catalog.facts),
      unknownModelPricing:
        file.catalog?.unknown_models === "pass_through"
          ? file.catalog.unknown_model_pricing
          : undefined,
    },
    ocr: { model: file.ocr?.model },
    routers: mapValues(file.routers ?? {}, ({ members, quality }) => ({
      members,
      quality: quality ?? [],
    })),
    plans: mapValues(file.plans ?? {}, ({ per_minute, five_hour, monthly_credits }) => ({
      fiveHour: five_hour,
      ...(per_minute === undefined ? {} : { perMinute: per_minute }),
      ...(monthly_credits === undefined
        ? {}
        : { monthlyCreditsNanoUsd: nanoFromUsd(monthly_credits) ?? 0n }),
    })),
    dashboard: file.dashboard ?? true,
    auth: {
      signUp: file.auth?.sign_up ?? "invitation",
      plan: file.auth?.plan ?? "free",
      breachedPasswordsUrl: file.auth?.breached_passwords_url,
      oidc: (file.auth?.oidc ?? []).map(oidcProvider),
      clientDocumentNetworks: file.auth?.client_document_networks ?? [],
    },
    proxies: variables.proxies,
    extraCertificates: (file.tls?.ca_files ?? []).flat(),
    mail: assembleMail(variables.mail, file.mail, variables.publicUrl ?? file.server?.public_url),
    claudeCode: {
      loginNotice: file.claude_code?.login_notice,
      managedSettings: file.claude_code?.managed_settings,
    },
    hub: { importNetworks: file.hub?.import_networks ?? [] },
    webhooks: { allowedNetworks: file.webhooks?.allowed_networks ?? [] },
    payments: assemblePayments(variables.stripe, file.payments),
    referrals: assembleReferrals(file.referrals),
    encryptionKey: variables.encryptionKey,
    secretsKey: variables.secretsKey,
    previousSecretsKey: variables.previousSecretsKey,
    metricsPort: variables.metricsPort,
    bootstrap: { ...variables.bootstrap, plan: variables.bootstrap.plan ?? "enterprise" },
    tracing: tracingSettings(environment),
    logLevel: variables.logLevel ?? "info",
  } satisfies Omit<Configuration<z.output<Provider>>, "effective">;
  return { ...settings, effective: effectiveSettings(settings, { environment, file }) };
}

type OidcEntry = NonNullable<NonNullable<FileSettings<z.ZodType>["auth"]>["oidc"]>[number];

const oidcProvider = (entry: OidcEntry): Configuration<unknown>["auth"]["oidc"][number] => ({
  id: entry.id,
  name: entry.name ?? entry.id,
  issuer: entry.issuer,
  clientId: entry.client_id,
  clientSecret: entry.client_secret,
  scopes: entry.scopes ?? ["openid", "email", "profile"],
  signUp: entry.sign_up ?? false,
});

function tracingSettings(environment: Environment): Configuration<unknown>["tracing"] {
  const { endpoint, headers = {}, serviceName } = readTracingSettings(environment);
  return { ...(endpoint === undefined ? {} : { endpoint }), headers, serviceName };
}

function absoluteStorageUrl(url: string, workingDirectory: string): string {
  return url.startsWith("sqlite:")
    ? `sqlite:${resolve(workingDirectory, url.slice("sqlite:".length))}`
    : url;
}

function mapValues<From, To>(
  record: Readonly<Record<string, From | undefined>>,
  map: (value: From) => To,
): Record<string, To> {
  const entries = Object.entries(record);
  return Object.fromEntries(
    entries.flatMap(([key, value]) => (value === undefined ? [] : [[key, map(value)]])),
  );
}
