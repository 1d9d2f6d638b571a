import { expect, test } from "bun:test";
import { join } from "node:path";
import { z } from "zod";
import { loadConfiguration } from "./load-configuration.ts";

const yaml = `
server: { port: 9000 }
storage: { url: "postgres://gateway:secret@db/switchyard" }
retention: { generations_days: 30 }
`;

const load = (environment: Record<string, string>) =>
  loadConfiguration({
    environment,
    workingDirectory: "/srv",
    providerSchema: async () => z.looseObject({ id: z.string() }),
    readFile: () => yaml,
  });

test("effective settings name their source, and environment variables take precedence over the file", async () => {
  const { effective } = await load({
    SWITCHYARD_CONFIG: "a.yaml",
    PORT: "9100",
    LOG_LEVEL: "warn",
  });
  const rowOf = (key: string) => effective.find((row) => row.key === key);
  expect(rowOf("server.port")).toEqual({
    key: "server.port",
    value: "9100",
    source: "environment",
    variable: "PORT",
  });
  expect(rowOf("retention.generations_days")).toEqual({
    key: "retention.generations_days",
    value: "30",
    source: "file",
    variable: null,
  });
  expect(rowOf("retention.responses_days")).toMatchObject({ value: "30", source: "default" });
  expect(rowOf("log level")).toMatchObject({ value: "warn", source: "environment" });
});

test("ALL_PROXY serves each scheme that has no proxy of its own", async () => {
  const all = "http://all:3128";
  const proxiesOf = async (variables: Record<string, string>): Promise<unknown> =>
    (await load({ SWITCHYARD_CONFIG: "a.yaml", ...variables })).proxies;
  expect(await proxiesOf({ ALL_PROXY: all })).toMatchObject({ https: all, http: all });
  expect(await proxiesOf({ all_proxy: all, HTTPS_PROXY: "http://own:1" })).toMatchObject({
    https: "http://own:1",
    http: all,
  });
  // A variable that is not needed is not read.
  const own = { HTTPS_PROXY: "http://own:1", HTTP_PROXY: "http://own:1" };
  expect(await proxiesOf({ ...own, ALL_PROXY: "socks5://elsewhere" })).toMatchObject({
    https: "http://own:1",
  });
});

test("effective settings contain no secret", async () => {
  const secrets = {
    SWITCHYARD_ENCRYPTION_KEY: Buffer.alloc(32, 1).toString("base64"),
    SWITCHYARD_SECRETS_KEY: Buffer.alloc(32, 2).toString("base64"),
    STRIPE_SECRET_KEY: "sk_test_0123456789abcdef0123",
    STRIPE_WEBHOOK_SECRET: "whsec_0123456789abcdef0123",
    REDIS_URL: "redis://user:hidden@cache:6379",
    REDIS_SENTINEL_URLS: "redis://:veiled@one:26379, redis://:veiled@two:26379",
    HTTPS_PROXY: "http://me:concealed@proxy:3128",
    HTTP_PROXY: "me:shrouded@proxy:3128",
  };
  const { effective } = await load({ SWITCHYARD_CONFIG: "a.yaml", ...secrets });
  const text = JSON.stringify(effective);
  const keys = [secrets.SWITCHYARD_ENCRYPTION_KEY, secrets.SWITCHYARD_SECRETS_KEY];
  for (const part of [
    "secret@",
    "hidden",
    "veiled",
    "concealed",
    "shrouded",
    "sk_test",
    "whsec",
    ...keys,
  ]) {
    expect(text).not.toContain(part);
  }
  expect(effective.find(({ key }) => key === "shared.sentinels")?.value).toBe(
    "redis://:***@one:26379, redis://:***@two:26379",
  );
  expect(effective.find(({ key }) => key === "payments")).toMatchObject({
    value: "set",
    source: "environment",
  });
});

test("switchyard.example.yaml is valid", async () => {
  const configuration = await loadConfiguration({
    environment: { SWITCHYARD_CONFIG: "switchyard.example.yaml", ACME_API_KEY: "key" },
    workingDirectory: join(import.meta.dir, "../../.."),
    providerSchema: async () => z.looseObject({ id: z.string(), api_key: z.string() }),
  });
  expect(configuration.providers).toMatchObject([
    { id: "acme", api_key: "key", models: [{ id: "acme/large" }] },
  ]);
  expect(configuration.plans).toEqual({ enterprise: { perMinute: 100_000, fiveHour: undefined } });
  expect(configuration.routers).toEqual({
    "service/auto": { members: ["acme/large"], quality: ["acme/large"] },
  });
});
