import { afterAll, describe, expect, test } from "bun:test";
import { Redis } from "ioredis";
import { CuttingProxy } from "../../support/cutting-proxy.ts";
import { freshDatabase, migratedDatabase } from "../../support/postgres.ts";
import {
  endProcesses,
  type ProcessOptions,
  runProcess,
  startProcess,
  temporaryDirectory,
  terminateStarting,
} from "../../support/process.ts";
import { hasRedis, redisMissing, startRedis } from "../../support/redis.ts";

afterAll(endProcesses);

const keyOf = (fill: number): string => Buffer.alloc(32, fill).toString("base64");
const SWITCHYARD_ENCRYPTION_KEY = keyOf(7);

/** A proxy before a server, closed until so many connections were refused. */
async function closedAtFirst(
  url: string,
  refusals: number,
): Promise<{ url: string; proxy: CuttingProxy }> {
  const { hostname, port } = new URL(url);
  const proxy = new CuttingProxy({ host: hostname, port: Number(port) });
  proxy.mode = "refuse";
  let refused = 0;
  proxy.onRefused = () => {
    refused += 1;
    if (refused >= refusals) proxy.mode = "pass";
  };
  return {
    url: Object.assign(new URL(url), { hostname: "127.0.0.1", port: String(await proxy.listen()) })
      .href,
    proxy,
  };
}

describe("a start waits", () => {
  test("for a Postgres that is not reachable yet, and logs it", async () => {
    const { url, proxy } = await closedAtFirst(await freshDatabase(), 3);
    const gateway = await startProcess({
      environment: { DATABASE_URL: url, SWITCHYARD_ENCRYPTION_KEY },
    });
    expect(await gateway.terminate()).toBe(0);
    expect(
      gateway.stderrText
        .split("\n")
        .filter((line) => line.includes('"msg":"waiting for the database"')),
    ).toHaveLength(3);
    await proxy.close();
  });

  test.skipIf(!hasRedis)(`for a Valkey that is not reachable yet${redisMissing}`, async () => {
    const redis = await startRedis();
    const { url, proxy } = await closedAtFirst(redis.url, 3);
    const gateway = await startProcess({ environment: { REDIS_URL: url } });
    await gateway.stderrHas("the server of shared state cannot be reached");
    expect(await gateway.terminate()).toBe(0);
    await proxy.close();
    await redis.kill();
  });
});

test("a start that waits ends with SIGTERM, and the exit code is 0", async () => {
  const { url, proxy } = await closedAtFirst(await freshDatabase(), Number.POSITIVE_INFINITY);
  const environment = { DATABASE_URL: url, SWITCHYARD_ENCRYPTION_KEY };
  const ended = await terminateStarting({ environment }, "waiting for the database");
  expect(ended).toMatchObject({ exitCode: 0, stdout: "" });
  expect(ended.stderr).toContain("ended before the gateway was ready");
  await proxy.close();
});

/** Starts a gateway and ends it again. */
async function startAndEnd(options: ProcessOptions): Promise<void> {
  expect(await (await startProcess(options)).terminate()).toBe(0);
}

async function expectRefusedKey(options: ProcessOptions): Promise<void> {
  const { exitCode, stderr } = await runProcess(options);
  expect(exitCode).toBe(1);
  expect(stderr).toMatch(
    /SWITCHYARD_ENCRYPTION_KEY.* is not the key that this database was first opened with/,
  );
}

describe("a start is refused", () => {
  test.skipIf(!hasRedis)(`by a Valkey with an eviction policy${redisMissing}`, async () => {
    const redis = await startRedis();
    const client = new Redis(redis.url);
    await client.config("SET", "maxmemory-policy", "allkeys-lru");
    client.disconnect();
    const { exitCode, stderr } = await runProcess({ environment: { REDIS_URL: redis.url } });
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(
      /^switchyard cannot start: .*allkeys-lru.*set maxmemory-policy to noeviction$/m,
    );
    await redis.kill();
  });

  test("with another encryption key than the database's, on Postgres", async () => {
    const dataDirectory = temporaryDirectory();
    const databaseUrl = await migratedDatabase();
    const options = (fill: number) => ({
      dataDirectory,
      environment: { DATABASE_URL: databaseUrl, SWITCHYARD_ENCRYPTION_KEY: keyOf(fill) },
    });
    await startAndEnd(options(7));
    await expectRefusedKey(options(8));
    await startAndEnd(options(7));
  });

  test("on SQLite with another encryption key, or another secrets key unless the previous one is given", async () => {
    const dataDirectory = temporaryDirectory();
    const start = (secrets: Record<string, string>, encryptionKey = SWITCHYARD_ENCRYPTION_KEY) => ({
      dataDirectory,
      environment: { SWITCHYARD_ENCRYPTION_KEY: encryptionKey, ...secrets },
    });
    await startAndEnd(start({ SWITCHYARD_SECRETS_KEY: keyOf(1) }));
    await expectRefusedKey(start({ SWITCHYARD_SECRETS_KEY: keyOf(1) }, keyOf(8)));
    expect((await runProcess(start({ SWITCHYARD_SECRETS_KEY: keyOf(2) }))).stderr).toContain(
      "SWITCHYARD_SECRETS_KEY",
    );
    const rotated = { SWITCHYARD_SECRETS_KEY: keyOf(2), SWITCHYARD_SECRETS_KEY_PREVIOUS: keyOf(1) };
    await startAndEnd(start(rotated));
    await startAndEnd(start({ SWITCHYARD_SECRETS_KEY: keyOf(2) }));
  });
});
