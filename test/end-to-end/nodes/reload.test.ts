import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type FaultScrapes, testAlert } from "../../support/alert-firing.ts";
import { testManagementKey } from "../../support/gateway.ts";
import { migratedDatabase } from "../../support/postgres.ts";
import {
  endProcesses,
  startProcess,
  temporaryDirectory,
  type GatewayProcess,
} from "../../support/process.ts";
import { hasRedis, redisMissing, startRedis, type RedisServer } from "../../support/redis.ts";
import { at } from "../api/at.ts";
import { acmeYaml } from "../process/support/acme-yaml.ts";
import { getJson } from "../process/support/ask.ts";
import { bootstrapVariables } from "../process/support/bootstrap-variables.ts";
import { until } from "./support/until.ts";

const upstreamUrl = "http://127.0.0.1:9";

/** The configuration with a price for prompts. */
const priced = (prompt: string, more = ""): string =>
  acmeYaml(upstreamUrl, more).replace('"0.50"', `"${prompt}"`);

describe.skipIf(!hasRedis)(`the configuration of two gateways${redisMissing}`, () => {
  const paths = [0, 1].map(() => join(temporaryDirectory(), "gateway.yaml"));
  let redis: RedisServer;
  let gateways: GatewayProcess[] = [];

  const write = (texts: readonly string[]): void =>
    texts.forEach((text, index) => writeFileSync(paths[index]!, text));
  const both = (text: string): void => write([text, text]);
  const pricesOf = (): Promise<unknown[]> =>
    Promise.all(
      gateways.map(async (gateway) =>
        at(await getJson(gateway, "/models/acme/large"), "pricing.input_per_1m"),
      ),
    );
  const reload = async (gateway: GatewayProcess): Promise<{ status: number; body: unknown }> => {
    const response = await fetch(`${gateway.url}/api/v1/admin/reload`, {
      method: "POST",
      headers: { authorization: `Bearer ${testManagementKey}` },
    });
    return { status: response.status, body: await response.json() };
  };
  const overview = (gateway: GatewayProcess): Promise<unknown> =>
    getJson(gateway, "/admin/overview", testManagementKey);
  const metricsOf = async ({ url }: GatewayProcess): Promise<string> =>
    (await fetch(`${url}/metrics`)).text();
  const untilPrices = (wanted: readonly number[], what: string): Promise<void> =>
    until(
      async () => Bun.deepEquals(await pricesOf(), wanted) || Bun.sleep(100).then(() => false),
      { patienceMs: 50_000, what },
    );

  const untilShown = (isShown: () => Promise<boolean>): Promise<void> =>
    until(async () => (await isShown()) || Bun.sleep(100).then(() => false), {
      patienceMs: 50_000,
      what: "it is shown",
    });

  beforeAll(async () => {
    both(priced("0.50"));
    const [server, databaseUrl] = await Promise.all([startRedis(), migratedDatabase()]);
    redis = server;
    const start = (path: string): Promise<GatewayProcess> =>
      startProcess({
        environment: {
          ...bootstrapVariables,
          SWITCHYARD_CONFIG: path,
          DATABASE_URL: databaseUrl,
          REDIS_URL: redis.url,
          SWITCHYARD_ENCRYPTION_KEY: Buffer.alloc(32, 7).toString("base64"),
        },
      });
    gateways = await Promise.all(paths.map(start));
  }, 240_000);
  afterAll(async () => {
    await endProcesses();
    await redis?.kill();
  });

  test("POST /admin/reload at one applies at both within seconds and reports the changes", async () => {
    expect(await pricesOf()).toEqual([0.5, 0.5]);
    both(priced("0.75"));
    const { status, body } = await reload(gateways[0]!);
    expect([status, body]).toMatchObject([
      200,
      { object: "reload", added: [], removed: [], needs_restart: [], nodes: 2 },
    ]);
    expect(at(body, "repriced.0")).toStartWith("acme/acme/large@");
    const toldMs = performance.now();
    await untilPrices([0.75, 0.75], "both have the new price");
    console.log(`a reload was in force at the other after ${performance.now() - toldMs} ms`);
  }, 240_000);

  test("SIGHUP to one reaches both", async () => {
    both(priced("0.80"));
    gateways[1]!.child.kill("SIGHUP");
    await untilPrices([0.8, 0.8], "both have the new price");
  }, 240_000);

  test("without Valkey a reload reaches the other through the database", async () => {
    both(priced("0.90"));
    redis.pause();
    expect((await reload(gateways[0]!)).status).toBe(200);
    await untilPrices([0.9, 0.9], "both have the new price");
    redis.resume();
  }, 240_000);

  let differing: FaultScrapes;
  test("differing files are shown per gateway with a warning, and sections that need a restart are named", async () => {
    await untilShown(async () => at(await overview(gateways[0]!), "gateways.alike") === true);
    const before = await metricsOf(gateways[0]!);
    write([priced("0.90"), priced("0.95", "retention: { generations_days: 5 }\n")]);
    expect((await reload(gateways[0]!)).status).toBe(200);
    await untilPrices([0.9, 0.95], "each has the price of its file");
    await Promise.all(gateways.map((gateway) => gateway.stderrHas("are configured differently")));
    await untilShown(async () => at(await overview(gateways[1]!), "gateways.alike") === false);
    await untilShown(async () =>
      (await metricsOf(gateways[0]!)).includes("\nswitchyard_configurations 2\n"),
    );
    differing = { before, during: await metricsOf(gateways[0]!) };
    const gatewaysShown = at(await overview(gateways[1]!), "gateways") as {
      alike: boolean;
      data: { configuration: string; needs_restart: string[]; problem: string | null }[];
    };
    expect(gatewaysShown.alike).toBe(false);
    expect(gatewaysShown.data.map((node) => node.needs_restart).sort()).toEqual([
      [],
      ["retention"],
    ]);
    expect(new Set(gatewaysShown.data.map((node) => node.configuration)).size).toBe(2);
  }, 240_000);

  testAlert("SwitchyardConfigurationsDiffer", () => differing);

  test("an invalid file returns 409 at its own gateway, is shown for the other and changes nothing", async () => {
    write([priced("cheap"), priced("cheap")]);
    const { status, body } = await reload(gateways[0]!);
    expect([status, at(body, "error.message")]).toEqual([
      409,
      expect.stringContaining("providers[0].models[0].pricing.prompt"),
    ]);
    write([priced("0.90"), priced("cheap")]);
    expect((await reload(gateways[0]!)).status).toBe(200);
    await untilShown(async () =>
      JSON.stringify(at(await overview(gateways[0]!), "gateways.data")).includes("pricing.prompt"),
    );
    expect(await pricesOf()).toEqual([0.9, 0.95]);
  }, 240_000);

  test("a gateway that has ended is no longer listed", async () => {
    expect(await gateways[1]!.terminate()).toBe(0);
    expect(at(await overview(gateways[0]!), "gateways.data")).toHaveLength(1);
  }, 240_000);
});
