import { describe, expect, test } from "bun:test";
import { z } from "zod";
import { ConfigurationError } from "./configuration-error.ts";
import { loadConfiguration } from "./load-configuration.ts";

const providerSchema = z.strictObject({
  id: z.string(),
  base_url: z.string().optional(),
  api_key: z.string().optional(),
  headers: z.record(z.string(), z.string()).optional(),
  dialect: z
    .union([z.enum(["openai-chat", "anthropic-messages"]), z.strictObject({ chat: z.string() })])
    .optional(),
  models: z
    .array(z.strictObject({ id: z.string(), context_length: z.int().positive() }))
    .optional(),
});

const missingFile = (path: string): never => {
  throw Object.assign(new Error(`ENOENT: no such file, open '${path}'`), { code: "ENOENT" });
};

interface Input {
  environment?: Record<string, string>;
  yaml?: string;
}

const load = ({ environment = {}, yaml }: Input) =>
  loadConfiguration({
    environment,
    workingDirectory: "/srv/gateway",
    providerSchema: async () => providerSchema,
    readFile: (path) =>
      yaml !== undefined && path === "/srv/gateway/switchyard.yaml" ? yaml : missingFile(path),
  });

async function problemsOf(input: Input): Promise<ConfigurationError> {
  try {
    await load(input);
  } catch (error) {
    if (error instanceof ConfigurationError) return error;
    throw error;
  }
  throw new Error("the configuration was accepted");
}

describe("defaults", () => {
  test("apply to every setting that is not set", async () => {
    const configuration = await load({});
    expect<unknown>(configuration).toEqual({
      effective: expect.any(Array),
      server: {
        host: "127.0.0.1",
        port: 8787,
        publicUrl: undefined,
        trustProxy: false,
        bodyMemoryBytes: 256 * 1024 ** 2,
        spoolBytes: 4_096 * 1024 ** 2,
        drainDelayMs: 250,
        drainGraceMs: 30_000,
        processes: 1,
      },
      dataDirectory: "/srv/gateway/data",
      storage: {
        url: "sqlite:/srv/gateway/data/switchyard.db",
        replicaUrl: undefined,
        embedded: true,
        durability: "power",
        waitMs: 30_000,
        poolSize: 10,
      },
      shared: { url: "memory:", sentinels: [] },
      archive: {
        url: "none",
        reads: "older",
        keepDays: undefined,
        contentDays: 7,
        contentMediaMb: 4,
      },
      retention: { generationsDays: 90, responsesDays: 30, logBudgetGb: 10 },
      disconnect: "abort",
      accessLog: undefined,
      telemetry: { traceContext: "link", usage: undefined },
      firstSecrets: "print",
      stream: { keepaliveBeforeContentSeconds: undefined },
      sockets: { enabled: true, lanes: 8 },
      providers: [],
      sandbox: { enabled: "auto" },
      catalog: { factsPath: undefined, onlyListed: false, unknownModelPricing: undefined },
      ocr: { model: undefined },
      audio: { bytesMax: 200 * 1024 ** 2 },
      files: expect.objectContaining({ url: "/srv/gateway/data/files", quotaGb: 10 }),
      batch: { concurrency: 8, native: "auto", pollSeconds: 60 },
      ...{ aliases: {}, doors: {} },
      routers: {},
      plans: {},
      dashboard: true,
      auth: {
        signUp: "invitation",
        plan: "free",
        breachedPasswordsUrl: undefined,
        oidc: [],
        clientDocumentNetworks: [],
      },
      proxies: { https: undefined, http: undefined, none: undefined },
      extraCertificates: [],
      search: undefined,
      mcp: { servers: [], allowedNetworks: [], maxRounds: 16 },
      webhooks: { allowedNetworks: [] },
      claudeCode: { loginNotice: undefined, managedSettings: undefined },
      hub: { importNetworks: [] },
      payments: {
        stripe: { secretKey: undefined, webhookSecret: undefined, apiBase: undefined },
        currency: "usd",
        fee: { basisPoints: 500, fixedCents: 50 },
        creditCentsMin: 500,
        creditCentsMax: 500_000,
        seller: undefined,
      },
      customers: { rule: undefined, most: 100_000, stripeMeter: undefined },
      referrals: undefined,
      bootstrap: {
        llmKey: undefined,
        managementKey: undefined,
        creditsNanoUsd: undefined,
        plan: "enterprise",
      },
      openTelemetry: { serviceName: "switchyard" },
      logLevel: "info",
    });
  });

  test("are deeply frozen in the result", async () => {
    const configuration = await load({ yaml: "providers: [{ id: acme, headers: { a: b } }]" });
    expect(Object.isFrozen(configuration.server)).toBe(true);
    expect(Object.isFrozen(configuration.providers[0]?.headers)).toBe(true);
  });

  test("apply to empty variables and empty keys", async () => {
    const configuration = await load({
      environment: { PORT: "", SWITCHYARD_CONFIG: " " },
      yaml: "providers:\nserver:\n  port:\n",
    });
    expect(configuration.server.port).toBe(8787);
    expect(configuration.providers).toEqual([]);
  });
});

describe("precedence", () => {
  const yaml = `
server:
  { host: 0.0.0.0, port: 9000, public_url: https://a.example/, trust_proxy: [10.0.0.0/8, "::1"],
    tls: { cert: tls/cert.pem, key: /etc/key.pem }, body_memory_mb: 64 }
storage: { url: sqlite:other.db, durability: process }
`;
  test("the file overrides the defaults", async () => {
    const { server, storage } = await load({ yaml });
    expect(server).toMatchObject({
      host: "0.0.0.0",
      port: 9000,
      publicUrl: "https://a.example",
      trustProxy: ["10.0.0.0/8", "::1"],
      tls: { certPath: "/srv/gateway/tls/cert.pem", keyPath: "/etc/key.pem" },
      bodyMemoryBytes: 64 * 1024 ** 2,
      processes: 1,
    });
    expect(storage).toEqual({
      url: "sqlite:/srv/gateway/other.db",
      replicaUrl: undefined,
      embedded: true,
      durability: "process",
      waitMs: 30_000,
      poolSize: 10,
    });
  });

  test("the environment overrides the file", async () => {
    const environment = {
      PORT: "0",
      HOST: "::1",
      DATABASE_URL: "postgresql://u:p@db/x",
      SWITCHYARD_PUBLIC_URL: "https://b.example/gw/",
      SWITCHYARD_DATA_DIR: "/var/lib/switchyard",
      SWITCHYARD_METRICS_PORT: "9100",
      LOG_LEVEL: "debug",
      OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318",
    };
    const configuration = await load({ yaml, environment });
    expect(configuration.server).toMatchObject({
      host: "::1",
      port: 0,
      publicUrl: "https://b.example/gw",
    });
    expect(configuration.storage).toMatchObject({ url: "postgresql://u:p@db/x", embedded: false });
    expect(configuration).toMatchObject({
      dataDirectory: "/var/lib/switchyard",
      metricsPort: 9100,
      logLevel: "debug",
      openTelemetry: { traces: { endpoint: "http://collector:4318/v1/traces" } },
    });
  });

  test("bootstrap settings come from the environment", async () => {
    const { bootstrap } = await load({
      environment: {
        SWITCHYARD_BOOTSTRAP_LLM_KEY: "sk-svc-v1-0123456789abcdef",
        SWITCHYARD_BOOTSTRAP_MANAGEMENT_KEY: "ak_live_0123456789abcdef",
        SWITCHYARD_BOOTSTRAP_CREDITS: "12.000000001",
        SWITCHYARD_BOOTSTRAP_PLAN: "pro_plus",
      },
    });
    expect(bootstrap).toEqual({
      llmKey: "sk-svc-v1-0123456789abcdef",
      managementKey: "ak_live_0123456789abcdef",
      creditsNanoUsd: 12_000_000_001n,
      plan: "pro_plus",
    });
  });
});

describe("references to environment variables", () => {
  const yaml = `
server: { port: "\${GATEWAY_PORT:-9001}", trust_proxy: "\${TRUST:-true}" }
providers:
  - { id: acme, base_url: "http://\${ACME_HOST:-localhost}/v1", api_key: "\${ACME_KEY}", headers: { x: "$\${y}" } }
`;

  test("use their default, omit an absent api_key, and keep $${ literally", async () => {
    const configuration = await load({ yaml });
    expect(configuration.server).toMatchObject({ port: 9001, trustProxy: true });
    expect(configuration.providers).toEqual([
      { id: "acme", base_url: "http://localhost/v1", headers: { x: "${y}" } },
    ]);
  });

  test("are replaced by the values of variables that are set", async () => {
    const configuration = await load({
      yaml,
      environment: { ACME_HOST: "acme", ACME_KEY: "s3cret", GATEWAY_PORT: "80" },
    });
    expect(configuration.server.port).toBe(80);
    expect(configuration.providers[0]).toMatchObject({
      base_url: "http://acme/v1",
      api_key: "s3cret",
    });
  });

  test("are refused with key and variable if the variable is not set", async () => {
    expect(
      (
        await problemsOf({ yaml: "providers:\n  - id: acme\n    base_url: ${ACME_URL}\n" })
      ).toString(),
    ).toBe(
      "switchyard.yaml:3 providers[0].base_url: the environment variable ACME_URL is not set; set it, or give a default as ${ACME_URL:-value}",
    );
  });
});

describe("an error in the file is reported with its line for", () => {
  const rows: [problem: string, yaml: string, line: string][] = [
    [
      "an unknown key, with a suggestion",
      "server:\n  prot: 1\n",
      'switchyard.yaml:2 server.prot: unknown key; did you mean "port"?',
    ],
    ["an unknown key without a similar one", "zebra: 1\n", "switchyard.yaml:1 zebra: unknown key"],
    [
      "an unknown key of a provider",
      "providers:\n  - id: a\n    base_ur: x\n",
      'switchyard.yaml:3 providers[0].base_ur: unknown key; did you mean "base_url"?',
    ],
    [
      "a nested unknown key",
      "providers:\n  - id: a\n    models:\n      - id: a/b\n        context_length: 1\n        contxt: 2\n",
      "switchyard.yaml:6 providers[0].models[0].contxt: unknown key",
    ],
    [
      "an unknown plan",
      "plans:\n  enterprize: { per_minute: 1 }\n",
      'switchyard.yaml:2 plans.enterprize: unknown key; did you mean "enterprise"?',
    ],
    [
      "a wrong type",
      "retention:\n  generations_days: soon\n",
      'switchyard.yaml:2 retention.generations_days: expected an integer from 1 to 36500, got "soon"',
    ],
    [
      "a list where a map belongs",
      "server: [1]\n",
      "switchyard.yaml:1 server: expected a map, got a list",
    ],
    [
      "a map where a list belongs",
      "providers:\n  acme: {}\n",
      "switchyard.yaml:1 providers: expected a list, got a map",
    ],
    [
      "a plan without settings",
      "plans:\n  free: {}\n",
      "switchyard.yaml:2 plans.free: expected per_minute, five_hour or monthly_credits, got a map",
    ],
    [
      "an invalid choice",
      "disconnect: stop\n",
      'switchyard.yaml:1 disconnect: expected "abort", "drain", got "stop"',
    ],
    [
      "a value that matches no alternative of a union",
      "sandbox: { enabled: 7 }\n",
      'switchyard.yaml:1 sandbox.enabled: expected "auto" or true or false, got 7',
    ],
    [
      "a value that resembles one alternative of a union",
      "providers:\n  - id: a\n    dialect: { chat: 3 }\n",
      "switchyard.yaml:3 providers[0].dialect.chat: expected text, got 3",
    ],
    [
      "an invalid address range",
      "server:\n  trust_proxy:\n    - 10.0.0.0/33\n",
      'switchyard.yaml:3 server.trust_proxy[0]: expected an IP address or a CIDR range, got "10.0.0.0/33"',
    ],
    [
      "a URL with an unsupported scheme",
      "server: { public_url: ftp://x }\n",
      'switchyard.yaml:1 server.public_url: expected an http(s) URL, got "ftp://x"',
    ],
    [
      "an in-memory database",
      "storage: { url: 'sqlite::memory:' }\n",
      'switchyard.yaml:1 storage.url: a database in memory would lose the ledger; name a file, got "sqlite::memory:"',
    ],
    [
      "an unknown scheme of the shared state",
      "shared:\n  url: memcached://:pw@h\n",
      'switchyard.yaml:2 shared.url: expected memory:, redis:// or rediss://, got "memcached://***@h"',
    ],
    [
      "an unknown scheme of the archive",
      "archive: { url: 'clickhouse://me:pw@h/d' }\n",
      'switchyard.yaml:1 archive.url: expected none or clickhouse+http(s)://USER:PASSWORD@HOST:PORT/DATABASE, got "clickhouse://***@h/d"',
    ],
    [
      "an archive database name that needs quoting",
      "archive: { url: 'clickhouse+http://me:pw@h/a-b' }\n",
      'switchyard.yaml:1 archive.url: expected a database named by letters, digits and underscores, got "clickhouse+http://***@h/a-b"',
    ],
    [
      "a duplicate provider id",
      "providers:\n  - id: acme\n  - id: acme\n",
      'switchyard.yaml:3 providers[1].id: "acme" is already the id of providers[0]',
    ],
    [
      "an unknown sign-up mode",
      "auth:\n  sign_up: everybody\n",
      'switchyard.yaml:2 auth.sign_up: expected "closed", "invitation", "open", got "everybody"',
    ],
    [
      "an invalid Stripe key, without the key",
      "payments:\n  stripe:\n    secret_key: hunter2\n",
      "switchyard.yaml:3 payments.stripe.secret_key: expected a secret key of Stripe: sk_test_..., sk_live_... or rk_...",
    ],
    [
      "a fraction of a cent",
      "payments:\n  fee:\n    fixed: 0.505\n",
      "switchyard.yaml:3 payments.fee.fixed: expected an amount of USD from 0 to 100, with two decimals at most, got 0.505",
    ],
    [
      "a minimum above the maximum",
      "payments:\n  top_up: { max: 4 }\n",
      "switchyard.yaml:2 payments.top_up: expected a min that is not above max (5 and 5000 where they are not named), got a map",
    ],
    [
      "a misspelled key of payments",
      "payments:\n  stripe: {}\n  seler: { name: a }\n",
      'switchyard.yaml:3 payments.seler: unknown key; did you mean "seller"?',
    ],
    [
      "referral credits of zero",
      "referrals:\n  after: sign_up\n",
      "switchyard.yaml:1 referrals: expected referrer_usd or referred_usd above 0, got a map",
    ],
    [
      "an unknown event for referral credits",
      "referrals:\n  referrer_usd: 5\n  after: birth\n",
      'switchyard.yaml:3 referrals.after: expected "first_top_up", "sign_up", got "birth"',
    ],
    [
      "an OpenID provider without an issuer",
      "auth:\n  oidc:\n    - id: acme\n      client_id: a\n",
      "switchyard.yaml:3 auth.oidc[0].issuer: is required",
    ],
    [
      "a misspelled key of an OpenID provider",
      "auth:\n  oidc:\n    - id: acme\n      issuer: https://a.example\n      clientid: a\n",
      'switchyard.yaml:5 auth.oidc[0].clientid: unknown key; did you mean "client_id"?',
    ],
    [
      "an OpenID provider id that is not a slug",
      "auth:\n  oidc:\n    - { id: A B, issuer: https://a.example, client_id: a }\n",
      'switchyard.yaml:3 auth.oidc[0].id: expected a slug: lower-case letters, digits and dashes, no dash first, got "A B"',
    ],
    [
      "a duplicate OpenID provider id",
      "auth:\n  oidc:\n    - { id: a, issuer: https://a.example, client_id: a }\n" +
        "    - { id: a, issuer: https://b.example, client_id: b }\n",
      'switchyard.yaml:4 auth.oidc[1].id: is the id of another provider above, got "a"',
    ],
    ["a duplicate key", "mail: { url: a, url: b }\n", "switchyard.yaml:1 mail.url: duplicate key"],
    [
      "an invalid OCR model id",
      "ocr:\n  model: large\n",
      'switchyard.yaml:2 ocr.model: expected a model id written as owner/model, got "large"',
    ],
    [
      "a misspelled key of ocr",
      "ocr:\n  modle: acme/ocr\n",
      'switchyard.yaml:2 ocr.modle: unknown key; did you mean "model"?',
    ],
    [
      "pass-through of unknown models without a price",
      "catalog: { unknown_models: pass_through }\n",
      'switchyard.yaml:1 catalog.unknown_models: needs unknown_model_pricing beside it, got "pass_through"',
    ],
    [
      "an unknown routing preset",
      "routers:\n  service/fast: { members: [a/b] }\n",
      'switchyard.yaml:2 routers.service/fast: unknown key; did you mean "service/auto"?',
    ],
    [
      "a quality member that is not in members",
      "routers:\n  service/auto: { members: [a/b], quality: [A/B, c/d] }\n",
      'switchyard.yaml:2 routers.service/auto.quality[1]: expected one of the members, got "c/d"',
    ],
    [
      "a routing preset without members",
      "routers: { service/free: { members: [] } }\n",
      "switchyard.yaml:1 routers.service/free.members: expected at least one model, got a list",
    ],
    [
      "invalid YAML",
      "server: {\n  port: 1\n",
      "switchyard.yaml:3 Flow map in block collection must be sufficiently indented and end with a }",
    ],
    [
      "a YAML error, without the errors that follow from it",
      "server: { host: ${HOST_NAME}, port: 1 }\ndisconnect: abort\n",
      "switchyard.yaml:1 Unexpected flow-map-start at node end",
    ],
    [
      "multiple YAML documents",
      "server: {}\n---\nserver: {}\n",
      "switchyard.yaml:2 a second document begins here",
    ],
    [
      "a secret of the wrong type, without the secret",
      "providers:\n  - id: a\n    api_key: 12345678\n",
      "switchyard.yaml:3 providers[0].api_key: expected text",
    ],
  ];
  test.each(rows)("%s", async (_, yaml, line) => {
    expect((await problemsOf({ yaml })).toString().split("\n")).toContain(line);
  });

  test("a problem has its file, line and column as fields", async () => {
    const { problems } = await problemsOf({ yaml: "server:\n  port: 70000\n" });
    expect(problems).toEqual([
      {
        key: "server.port",
        message: "expected an integer from 0 to 65535, got 70000",
        file: "switchyard.yaml",
        line: 2,
        column: 9,
      },
    ]);
  });

  test("a value behind an anchor is reported at its own line", async () => {
    const yaml =
      "providers:\n  - &base\n    id: a\n    models: [{ id: a/b, context_length: 0 }]\n  - *base\n";
    expect((await problemsOf({ yaml })).problems.map(({ key, line }) => `${line} ${key}`)).toEqual([
      "3 providers[1].id",
      "4 providers[0].models[0].context_length",
      "4 providers[1].models[0].context_length",
    ]);
  });

  test("excessive YAML aliases are refused", async () => {
    const level = (index: number) =>
      `a${index}: &a${index} [${Array(9)
        .fill(`*a${index - 1}`)
        .join(", ")}]`;
    const yaml = ["a0: &a0 [x]", ...Array.from({ length: 8 }, (_, index) => level(index + 1))].join(
      "\n",
    );
    expect((await problemsOf({ yaml })).toString()).toContain("Excessive alias count");
  });
});

describe("an error in the environment is reported with its variable for", () => {
  const rows: [variable: string, value: string, line: string][] = [
    ["PORT", "abc", 'PORT: expected an integer from 0 to 65535, got "abc"'],
    ["PORT", "65536", 'PORT: expected an integer from 0 to 65535, got "65536"'],
    [
      "SWITCHYARD_METRICS_PORT",
      "-1",
      'SWITCHYARD_METRICS_PORT: expected an integer from 0 to 65535, got "-1"',
    ],
    [
      "SWITCHYARD_PUBLIC_URL",
      "gateway",
      'SWITCHYARD_PUBLIC_URL: expected an http(s) URL, got "gateway"',
    ],
    [
      "DATABASE_URL",
      "mysql://u:p@h/d",
      'DATABASE_URL: expected sqlite:PATH or a postgres:// URL, got "mysql://***@h/d"',
    ],
    [
      "DATABASE_URL",
      "mysql://u:p@ss/w@h/d?password=p",
      'DATABASE_URL: expected sqlite:PATH or a postgres:// URL, got "mysql://***@h/d?***"',
    ],
    ["SMTP_URL", "smtp:u:p@h", 'SMTP_URL: expected smtp://HOST or smtps://HOST, got "smtp:***@h"'],
    [
      "DATABASE_URL",
      "sqlite::memory:",
      'DATABASE_URL: a database in memory would lose the ledger; name a file, got "sqlite::memory:"',
    ],
    ["REDIS_URL", "h:1", 'REDIS_URL: expected memory:, redis:// or rediss://, got "h:1"'],
    [
      "CLICKHOUSE_URL",
      "https://h",
      'CLICKHOUSE_URL: expected none or clickhouse+http(s)://USER:PASSWORD@HOST:PORT/DATABASE, got "https://h"',
    ],
    [
      "SWITCHYARD_ENCRYPTION_KEY",
      "c2hvcnQ=",
      "SWITCHYARD_ENCRYPTION_KEY: expected 32 bytes in base64",
    ],
    [
      "SWITCHYARD_BOOTSTRAP_LLM_KEY",
      "sk-svc-v1-short",
      "SWITCHYARD_BOOTSTRAP_LLM_KEY: expected sk-svc-v1- and at least 16 more characters",
    ],
    [
      "SWITCHYARD_BOOTSTRAP_MANAGEMENT_KEY",
      "0123456789abcdef0123",
      "SWITCHYARD_BOOTSTRAP_MANAGEMENT_KEY: expected ak_ and at least 16 more characters",
    ],
    [
      "SWITCHYARD_BOOTSTRAP_CREDITS",
      "-1",
      'SWITCHYARD_BOOTSTRAP_CREDITS: expected a decimal number of USD from 0 to 9000000, got "-1"',
    ],
    [
      "SWITCHYARD_BOOTSTRAP_PLAN",
      "gold",
      'SWITCHYARD_BOOTSTRAP_PLAN: expected free, payg, go, pro, pro_plus, max, enterprise, got "gold"',
    ],
    [
      "OTEL_EXPORTER_OTLP_ENDPOINT",
      "collector",
      'OTEL_EXPORTER_OTLP_ENDPOINT: expected an http(s) URL, got "collector"',
    ],
    [
      "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT",
      "collector",
      'OTEL_EXPORTER_OTLP_LOGS_ENDPOINT: expected an http(s) URL, got "collector"',
    ],
    ["OTEL_METRIC_EXPORT_INTERVAL", "0", 'OTEL_METRIC_EXPORT_INTERVAL: expected over 0, got "0"'],
    ["LOG_LEVEL", "loud", 'LOG_LEVEL: expected debug, info, warn, error, silent, got "loud"'],
    [
      "SWITCHYARD_CONFIG",
      "other.yaml",
      "SWITCHYARD_CONFIG: cannot read other.yaml: there is no such file",
    ],
  ];
  test.each(rows)("%s=%s", async (variable, value, line) => {
    expect((await problemsOf({ environment: { [variable]: value } })).toString()).toBe(line);
  });

  test("all problems of the file and the environment are reported together", async () => {
    const error = await problemsOf({
      environment: { PORT: "x", LOG_LEVEL: "y" },
      yaml: "disconnect: 1\nzebra: 2\n",
    });
    expect(error.problems.map(({ key }) => key)).toEqual([
      "PORT",
      "LOG_LEVEL",
      "disconnect",
      "zebra",
    ]);
  });
});

test("a plan with monthly credits keeps its default rate limits", async () => {
  const { plans } = await load({ yaml: "plans: { pro: { monthly_credits: 20 } }\n" });
  expect(plans).toEqual({ pro: { fiveHour: undefined, monthlyCreditsNanoUsd: 20_000_000_000n } });
});
