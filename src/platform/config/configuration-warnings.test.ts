import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createAuthority } from "../../../test/support/certificates.ts";
import { certificateWarnings, type ConfigurationWarning } from "./configuration-warnings.ts";
import { loadConfiguration } from "./load-configuration.ts";
import { configuredProviderSchema } from "../../inference/catalog/configured/configured-provider.ts";

async function warningsOf(
  environment: Record<string, string>,
  yaml = "",
): Promise<ConfigurationWarning[]> {
  const warnings: ConfigurationWarning[] = [];
  await loadConfiguration({
    environment,
    workingDirectory: "/srv/gateway",
    providerSchema: async () => configuredProviderSchema,
    readFile: () => yaml,
    onWarning: (warning) => warnings.push(warning),
  });
  return warnings;
}

describe("variables that nothing reads", () => {
  test.each([
    ["SWITCHYARD_DATADIR", "/data", "did you mean SWITCHYARD_DATA_DIR?"],
    ["SWITCHYARD_ENCRYPTON_KEY", "secret", "did you mean SWITCHYARD_ENCRYPTION_KEY?"],
    ["SWITCHYARD_PORT", "8080", "did you mean PORT?"],
    ["SWITCHYARD_DATABASE_URL", "postgres://a", "did you mean DATABASE_URL?"],
    ["SWITCHYARD_ZEBRA_CROSSING", "1", "is read by nothing here"],
  ])("%s is named", async (name, value, text) => {
    const [warning, ...others] = await warningsOf({ [name]: value });
    expect(others).toEqual([]);
    expect(warning?.key).toBe(name);
    expect(warning?.message).toEndWith(text);
    expect(warning?.message).not.toContain("secret");
  });

  test.each([
    ["SWITCHYARD_METRICS_PORT", "9464"],
    ["SWITCHYARD_KEY", "sk-of-the-command"],
    ["SWITCHYARD_DATADIR", " "],
    ["SWITCHYARD_SERVICE_HOST", "10.0.0.1"],
    ["SWITCHYARD_PORT", "tcp://10.0.0.1:80"],
    ["SWITCHYARD_PORT_8787_TCP_ADDR", "10.0.0.1"],
    ["SWITCHYARD_HOUSE", "read by the file"],
  ])("%s=%s is not", async (name, value) => {
    const yaml = "providers:\n  - { id: openai, api_key: '${SWITCHYARD_HOUSE:-none}' }\n";
    expect(await warningsOf({ [name]: value }, yaml)).toEqual([]);
  });
});

test("a provider's key that is not set is named, with its line and the likely variable", async () => {
  const yaml = "providers:\n  - id: openai\n    api_key: ${OPENAI_API_KY}\n";
  expect(await warningsOf({ OPENAI_API_KEY: "sk-1" }, yaml)).toEqual([
    expect.objectContaining({
      key: "providers[0].api_key",
      line: 3,
      message:
        "the environment variable OPENAI_API_KY is not set, so that callers bring their own key; did you mean OPENAI_API_KEY?",
    }),
  ]);
  const elsewhere = "providers:\n  - id: openai\n    base_url: ${ACME_ULR}\n";
  expect(warningsOf({ ACME_URL: "http://a" }, elsewhere)).rejects.toThrow("did you mean ACME_URL?");
});

test.each([
  ["OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", ["OTEL_EXPORTER_OTLP_PROTOCOL"]],
  ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/protobuf", ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"]],
  ["OTEL_EXPORTER_OTLP_PROTOCOL", "http/json", []],
])("%s=%s", async (name, value, keys) => {
  const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4317" };
  const warnings = await warningsOf({ ...endpoint, [name]: value });
  expect(warnings.map(({ key }) => key)).toEqual(keys);
  expect(await warningsOf({ [name]: value })).toEqual([]);
});

test.each([
  ["https://a.example/gw", 1],
  ["https://a.example/", 0],
  ["https://a.example", 0],
])("the public URL %s", async (url, count) => {
  expect(await warningsOf({ SWITCHYARD_PUBLIC_URL: url })).toHaveLength(count);
});

test("files that other gateways would not find are named", async () => {
  const several = { DATABASE_URL: "postgres://db/one", REDIS_URL: "redis://valkey" };
  const keysOf = async (variables: Record<string, string>, yaml = "") =>
    (await warningsOf(variables, yaml)).map(({ key }) => key);
  expect(await keysOf(several)).toEqual(["files.url"]);
  expect(await keysOf(several, "files: { url: /srv/shared }\n")).toEqual([]);
  expect(await keysOf(several, "files: { url: s3://bucket/one }\n")).toEqual([]);
  expect(await keysOf(several, "server: { processes: 2 }\n")).toEqual([]);
  expect(await keysOf({})).toEqual([]);
});

describe("a certificate", () => {
  const folder = mkdtempSync(join(tmpdir(), "switchyard-certificate-"));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const certPath = join(folder, "cert.pem");
  const ends = new Date("2030-06-01T00:00:00Z");
  writeFileSync(certPath, createAuthority().issue("gateway.example.com", { ends }).cert);

  test.each([
    [1, "the certificate expired at 2030-06-01"],
    [0, "the certificate expired at 2030-06-01"],
    [-13, "the certificate expires at 2030-06-01"],
    [-15, undefined],
  ])("%d days after its end", (days, text) => {
    const [warning] = certificateWarnings({ certPath }, ends.getTime() + days * 86_400_000);
    if (text === undefined) expect(warning).toBeUndefined();
    else expect(warning?.message).toStartWith(text);
  });

  test("that cannot be read is left to the check that refuses it", () => {
    expect(certificateWarnings({ certPath: join(folder, "none.pem") }, 0)).toEqual([]);
  });
});
