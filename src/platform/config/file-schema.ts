import { usageLabels } from "../telemetry/usage-metrics.ts";
import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { z } from "zod";
import { brand } from "../kernel/brand.ts";
import { picoPerTokenFromUsdPerMillion } from "../kernel/money.ts";
import { searchSchema } from "./search-settings.ts";
import { aliasesSchema, doorsSchema } from "./alias-settings.ts";
import { mcpSchema, mcpServersSchema } from "./mcp-settings.ts";
import {
  addressRangeSchema,
  archiveUrlSchema,
  booleanFromText,
  customersSchema,
  filesUrlSchema,
  httpUrlSchema,
  mailSchema,
  numberFromText,
  paymentsSchema,
  referralsSchema,
  replicaUrlSchema,
  sentinelUrlsSchema,
  sharedUrlSchema,
  storageUrlSchema,
  webhooksSchema,
  planIds,
} from "./setting-schemas.ts";

const integer = (minimum: number, maximum: number) => {
  const message = `expected an integer from ${minimum} to ${maximum}`;
  return z.preprocess(numberFromText, z.int(message).min(minimum, message).max(maximum, message));
};
const days = integer(1, 36_500);
const requests = integer(1, 1_000_000_000);
const name = z.string().min(1, "expected a text that is not empty");
const modelId = z.string().regex(/^[^/\s]+\/\S+$/, "expected a model id written as owner/model");

const serverSchema = z
  .strictObject({
    host: name,
    port: integer(0, 65_535),
    public_url: httpUrlSchema,
    trust_proxy: z.preprocess(booleanFromText, z.union([z.boolean(), z.array(addressRangeSchema)])),
    tls: z.strictObject({ cert: name, key: name }),
    body_memory_mb: integer(32, 1_000_000),
    spool_mb: integer(16, 100_000_000),
    processes: z.union(
      [z.literal("auto"), integer(1, 256)],
      "expected auto or an integer from 1 to 256",
    ),
    drain_delay_ms: integer(0, 600_000),
    drain_grace_ms: integer(0, 3_600_000),
  })
  .partial();

const telemetrySchema = z
  .strictObject({
    trace_context: z.enum(["link", "continue"]),
    usage_labels: z.array(z.enum(usageLabels)).min(1),
    usage_series: integer(1, 100_000),
  })
  .partial();

const retentionSchema = z
  .strictObject({
    generations_days: days,
    responses_days: days,
    log_budget_gb: z.preprocess(numberFromText, z.number().positive("expected a number above 0")),
  })
  .partial();

/** The first-party routing presets, by their wire ids. */
const routerIds = ["auto", "free", "cowork", "hermes", "latest"].map(
  (preset) => `${brand.routerOwner}/${preset}`,
);

const routerSchema = z
  .strictObject({
    members: z.array(modelId).min(1, "expected at least one model"),
    quality: z.array(modelId).optional(),
  })
  .superRefine(({ members, quality }, context) => {
    const known = new Set(members.map((id) => id.toLowerCase()));
    quality?.forEach((id, index) => {
      if (known.has(id.toLowerCase())) return;
      context.addIssue({
        code: "custom",
        path: ["quality", index],
        message: "expected one of the members",
      });
    });
  });

const gigabytes = z.preprocess(
  numberFromText,
  z.number().min(0, "expected gigabytes").max(1e9, "expected at most 1e9 gigabytes"),
);

/** Where files are stored, and how much of them. */
const filesSchema = z
  .strictObject({
    url: filesUrlSchema,
    endpoint: httpUrlSchema,
    region: name,
    access_key_id: name,
    secret_access_key: name,
    quota_gb: z.union([gigabytes, z.partialRecord(z.enum(planIds), gigabytes)]),
    upload_from_mb: z.union([
      z.literal("never"),
      z.preprocess(numberFromText, z.number().positive("expected a number above 0")),
    ]),
  })
  .partial();

const batchSchema = z
  .strictObject({
    concurrency: integer(1, 1_000),
    native: z.enum(["auto", "never"]),
    poll_s: integer(1, 3_600),
  })
  .partial();

/** Monthly credits of a plan, in USD. */
const creditsUsd = z.preprocess(
  numberFromText,
  z.number().min(0, "expected an amount of USD").max(1_000_000, "expected at most 1000000 USD"),
);

const planSchema = z
  .strictObject({
    per_minute: requests.optional(),
    five_hour: requests.optional(),
    monthly_credits: creditsUsd.optional(),
  })
  .refine(
    (plan) => Object.keys(plan).length > 0,
    "expected per_minute, five_hour or monthly_credits",
  );

const oidcSchema = z.strictObject({
  id: z
    .string()
    .regex(
      /^[a-z0-9][a-z0-9-]*$/,
      "expected a slug: lower-case letters, digits and dashes, no dash first",
    )
    .refine((id) => id !== "credential", "is the name of passwords; choose another"),
  name: name.optional(),
  issuer: httpUrlSchema,
  client_id: name,
  client_secret: name.optional(),
  scopes: z.array(name).optional(),
  sign_up: z.preprocess(booleanFromText, z.boolean()).optional(),
});

const authSchema = z
  .strictObject({
    sign_up: z.enum(["closed", "invitation", "open"]),
    plan: z.enum(planIds),
    breached_passwords_url: httpUrlSchema,
    client_document_networks: z.array(addressRangeSchema),
    oidc: z.array(oidcSchema).superRefine((providers, context) => {
      providers.forEach(({ id }, index) => {
        if (providers.findIndex((other) => other.id === id) === index) return;
        context.addIssue({
          code: "custom",
          path: [index, "id"],
          message: "is the id of another provider above",
        });
      });
    }),
  })
  .partial();

/** USD per million tokens; `request` in USD per request. */
const priceUsd = z
  .union([z.string(), z.number()])
  .refine(
    (price) => (picoPerTokenFromUsdPerMillion(price) ?? -1n) >= 0n,
    'expected a number of USD per million tokens, such as "15"',
  );

const catalogSchema = z
  .strictObject({
    facts: name,
    models: z.enum(["all", "listed"]),
    unknown_models: z.enum(["refuse", "pass_through"]),
    unknown_model_pricing: z.strictObject({
      prompt: priceUsd,
      completion: priceUsd,
      cache_read: priceUsd.optional(),
      cache_write: priceUsd.optional(),
      request: priceUsd.optional(),
    }),
  })
  .partial()
  .refine(
    ({ unknown_models: mode, unknown_model_pricing: pricing }) =>
      mode !== "pass_through" || pricing !== undefined,
    { path: ["unknown_models"], message: "needs unknown_model_pricing beside it" },
  )
  .refine(({ unknown_models: mode, models }) => mode !== "pass_through" || models !== "listed", {
    path: ["unknown_models"],
    message: "contradicts models: listed, which offers no other models",
  });

/**
 * Creates the schema of switchyard.yaml. Providers are checked by the schema of their users, and
 * relative paths start from a directory.
 */
export const createFileSchema = <Provider extends z.ZodType>(
  provider: Provider,
  directory: string,
) =>
  z
    .strictObject({
      server: serverSchema,
      storage: z
        .strictObject({
          url: storageUrlSchema,
          replica_url: replicaUrlSchema,
          durability: z.enum(["power", "process"]),
          wait_s: integer(0, 86_400),
          pool_size: integer(2, 1_000),
        })
        .partial(),
      shared: z.strictObject({ url: sharedUrlSchema, sentinels: sentinelUrlsSchema }).partial(),
      archive: z
        .strictObject({
          url: archiveUrlSchema,
          reads: z.enum(["older", "always"]),
          days,
          content_days: days,
          content_media_mb: integer(0, 16),
        })
        .partial(),
      retention: retentionSchema,
      disconnect: z.enum(["abort", "drain"]),
      access_log: name,
      telemetry: telemetrySchema,
      stream: z.strictObject({ keepalive_before_content_s: integer(1, 3_600) }).partial(),
      providers: z.array(provider),
      sandbox: z
        .strictObject({
          enabled: z.preprocess(booleanFromText, z.union([z.literal("auto"), z.boolean()])),
        })
        .partial(),
      tls: z.strictObject({ ca_files: z.array(certificateFileSchema(directory)) }).partial(),
      catalog: catalogSchema,
      ocr: z.strictObject({ model: modelId }).partial(),
      audio: z.strictObject({ max_mb: integer(1, 100_000) }).partial(),
      files: filesSchema,
      batch: batchSchema,
      aliases: aliasesSchema,
      doors: doorsSchema,
      routers: z.partialRecord(z.enum(routerIds), routerSchema),
      plans: z.partialRecord(z.enum(planIds), planSchema),
      auth: authSchema,
      mail: mailSchema,
      webhooks: webhooksSchema,
      hub: z.strictObject({ import_networks: z.array(addressRangeSchema) }).partial(),
      mcp: mcpSchema,
      mcp_servers: mcpServersSchema,
      search: searchSchema,
      sockets: z.union([z.boolean(), z.strictObject({ lanes: integer(1, 256) }).partial()]),
      claude_code: z
        .strictObject({
          login_notice: z.string().trim().min(1).max(500),
          managed_settings: z.record(z.string(), z.unknown()),
        })
        .partial(),
      payments: paymentsSchema,
      customers: customersSchema,
      referrals: referralsSchema,
      dashboard: z.preprocess(booleanFromText, z.boolean()),
    })
    .partial();

/** The content of a valid file. */
export type FileSettings<Provider extends z.ZodType> = z.output<
  ReturnType<typeof createFileSchema<Provider>>
>;

const certificatePattern = /-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g;

/**
 * The path of a file with certificates in PEM. The file is read, so that the setting's value is its
 * certificates.
 */
const certificateFileSchema = (directory: string) =>
  z.string().transform((path, context): string[] => {
    try {
      const certificates: string[] =
        readFileSync(resolve(directory, path), "utf8").match(certificatePattern) ?? [];
      if (certificates.length === 0) throw new Error("it holds no -----BEGIN CERTIFICATE-----");
      for (const certificate of certificates) new X509Certificate(certificate);
      return certificates;
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      context.addIssue({
        code: "custom",
        message: `expected a file with certificates in PEM: ${reason}`,
      });
      return z.NEVER;
    }
  });
