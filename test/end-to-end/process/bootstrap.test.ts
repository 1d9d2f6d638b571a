import { afterAll, describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { endpoints } from "../../../src/endpoints/index.ts";
import { pathsOf } from "../../../src/http/endpoint.ts";
import { isNightly } from "../../support/nightly.ts";
import { servedPath } from "../../support/served-path.ts";
import { testLlmKey, testManagementKey } from "../../support/gateway.ts";
import {
  endProcesses,
  type GatewayProcess,
  runProcess,
  startProcess,
  temporaryDirectory,
} from "../../support/process.ts";
import { at } from "../api/at.ts";
import { getJson } from "./support/ask.ts";
import { bootstrapVariables } from "./support/bootstrap-variables.ts";
import { queryDatabase } from "./support/query-database.ts";

afterAll(endProcesses);

const otherLlmKey = "sk-svc-v1-otherotherotherotherotherother";
const otherManagementKey = "ak_other_management_key_with_all_scopes";

/** What the bootstrap could have made, as the database has it. */
async function recordsIn(dataDirectory: string) {
  const path = join(dataDirectory, "switchyard.db");
  const [workspaces, llmKeys, managementKeys, transfers] = await Promise.all([
    queryDatabase(path, "select id, plan from workspaces"),
    queryDatabase(path, "select id, name, hash from llm_keys order by created_at_ms, id"),
    queryDatabase(path, "select id, name, hash from management_keys order by created_at_ms, id"),
    queryDatabase(path, "select id, amount_nano, kind from transfers"),
  ]);
  return { workspaces, llmKeys, managementKeys, transfers };
}

/** Where no other user of the machine can read it, and with no secret in any of its files. */
function expectPrivate(dataDirectory: string): void {
  const modeOf = (path: string): number => statSync(path).mode & 0o777;
  expect(modeOf(dataDirectory)).toBe(0o700);
  expect(modeOf(join(dataDirectory, "encryption.key"))).toBe(0o600);
  const files = readdirSync(dataDirectory).filter((name) => !name.endsWith(".sock"));
  expect(files).toContain("switchyard.db-wal");
  for (const name of files) {
    const text = readFileSync(join(dataDirectory, name), "latin1");
    for (const secret of [testLlmKey, testManagementKey])
      expect([name, text.includes(secret)]).toEqual([name, false]);
  }
}

/** Marks every LLM key as deleted, as an operator can. */
const deleteKeys = (dataDirectory: string): Promise<unknown> =>
  queryDatabase(join(dataDirectory, "switchyard.db"), "update llm_keys set deleted_at_ms = 1");

describe("bootstrap variables", () => {
  test("create keys, credits and a plan on the first start, and nothing on later ones, nor deleted keys again", async () => {
    const dataDirectory = join(temporaryDirectory(), "made-by-the-gateway");
    const first = await startProcess({ dataDirectory, environment: bootstrapVariables });
    expectPrivate(dataDirectory);
    expect(first.stdoutLines.join("\n")).not.toContain("sk-svc-v1-");
    expect(await getJson(first, "/credits")).toMatchObject({
      balance: 10,
      topup_balance: 10,
      monthly_balance: 0,
      used: 0,
    });
    expect(await getJson(first, "/keys", testManagementKey)).toMatchObject({
      data: [{ name: "bootstrap" }],
    });
    await first.terminate();
    const made = await recordsIn(dataDirectory);
    expect(made).toMatchObject({
      workspaces: [{ plan: "enterprise" }],
      llmKeys: [{ name: "bootstrap" }],
      managementKeys: [{ name: "bootstrap" }],
      transfers: [{ kind: "topup", amount_nano: 10_000_000_000 }],
    });
    const startWith = (credits: string): Promise<GatewayProcess> =>
      startProcess({
        dataDirectory,
        environment: {
          ...bootstrapVariables,
          SWITCHYARD_BOOTSTRAP_CREDITS: credits,
          SWITCHYARD_BOOTSTRAP_PLAN: "free",
        },
      });
    const later = await startWith("25");
    expect(await getJson(later, "/credits")).toMatchObject({ balance: 10, topup_balance: 10 });
    await later.kill9();
    expect(await recordsIn(dataDirectory)).toEqual(made);
    await deleteKeys(dataDirectory);
    const path = join(dataDirectory, "switchyard.db");
    await queryDatabase(path, "update management_keys set revoked_at_ms = 1");
    const last = await startWith("0");
    for (const secret of [testLlmKey, testManagementKey]) {
      const response = await fetch(`${last.url}/api/v1/credits`, {
        headers: { authorization: `Bearer ${secret}` },
      });
      expect(response.status).toBe(401);
    }
    expect(await recordsIn(dataDirectory)).toEqual(made);
  });

  test("set the plan of the first workspace, add missing records on a later start, and leave existing ones unchanged", async () => {
    const dataDirectory = temporaryDirectory();
    const plain = await startProcess({
      dataDirectory,
      environment: { SWITCHYARD_BOOTSTRAP_PLAN: "go" },
    });
    const shown =
      plain.stdoutLines.map((line) => /^First key {2}(\S+)/.exec(line)?.[1]).find(Boolean) ?? "";
    expect((await recordsIn(dataDirectory)).workspaces).toMatchObject([{ plan: "go" }]);
    expect(await getJson(plain, "/credits", shown)).toMatchObject({ balance: 0 });
    await plain.terminate();
    const second = await startProcess({ dataDirectory, environment: bootstrapVariables });
    expect(await getJson(second, "/credits", shown)).toMatchObject({ balance: 10 });
    expect(await getJson(second, "/credits", testLlmKey)).toMatchObject({ balance: 10 });
    await second.terminate();
    const third = await startProcess({
      dataDirectory,
      environment: {
        SWITCHYARD_BOOTSTRAP_LLM_KEY: otherLlmKey,
        SWITCHYARD_BOOTSTRAP_MANAGEMENT_KEY: otherManagementKey,
      },
    });
    for (const secret of [shown, testLlmKey, otherLlmKey])
      expect(await getJson(third, "/credits", secret)).toMatchObject({ balance: 10 });
    for (const secret of [testManagementKey, otherManagementKey])
      expect(at(await getJson(third, "/keys", secret), "data.2")).toBeDefined();
  });
});

describe("SWITCHYARD_FIRST_SECRETS=file", () => {
  test("keeps the first key and the claim link in a file of this user", async () => {
    const dataDirectory = temporaryDirectory();
    const environment = { SWITCHYARD_FIRST_SECRETS: "file" };
    const path = join(dataDirectory, "first-start.txt");
    const first = await startProcess({ dataDirectory, environment });
    expect(first.stdoutLines.join("\n")).not.toMatch(/sk-svc-v1-|claim\?token/);
    expect(first.stdoutLines.join("\n")).toContain(path);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    const key = /^First key {2}(\S+)$/m.exec(readFileSync(path, "utf8"))?.[1] ?? "";
    expect(await getJson(first, "/credits", key)).toMatchObject({ balance: 0 });
    await first.terminate();
    const second = await startProcess({ dataDirectory, environment });
    const text = readFileSync(path, "utf8");
    expect(text).toContain(key);
    const link = /^Dashboard {2}(\S+)$/m.exec(text)?.[1] ?? "";
    expect((await fetch(link)).status).toBe(200);
    await second.terminate();
    const printing = await startProcess({ dataDirectory });
    expect(existsSync(path)).toBe(false);
    await printing.terminate();
  });
});

/** Secrets that products have shipped with, and forms that tell nothing. */
const guesses = [
  undefined,
  "",
  "Bearer",
  "Bearer undefined",
  "Bearer null",
  "Bearer admin",
  "Bearer 123456",
  "Bearer sk-1234",
  "Bearer sk-svc-v1-",
  "Bearer $SWITCHYARD_KEY",
  `Bearer ${testLlmKey}`,
  `Bearer ${testManagementKey}`,
  "Basic cm9vdDoxMjM0NTY=",
];

describe("a first start without bootstrap variables", () => {
  let gateway: GatewayProcess;
  test("creates one LLM key, no management key and no credits, and requests without a key get 401", async () => {
    gateway = await startProcess({
      dataDirectory: temporaryDirectory(),
      yaml: "server:\n  trust_proxy: true\n",
    });
    const records = await recordsIn(gateway.dataDirectory);
    expect(records).toMatchObject({
      llmKeys: [{ name: "First key" }],
      managementKeys: [],
      transfers: [],
    });
    expect(records.llmKeys).toHaveLength(1);
    // Sockets are refused by their handshakes, which test/end-to-end/sockets sends.
    const guarded = endpoints.filter(
      ({ access, socket }) => !access.open && !access.anonymous && socket === undefined,
    );
    expect(guarded.length).toBeGreaterThan(5);
    const open: string[] = [];
    let asked = 0;
    for (const [place, endpoint] of guarded.entries()) {
      for (const path of pathsOf(endpoint).map((pattern) => servedPath(endpoint, pattern))) {
        for (const authorization of isNightly
          ? guesses
          : [undefined, guesses[place % guesses.length]]) {
          const response = await fetch(gateway.url + path, {
            method: endpoint.method,
            // Of many addresses: refusals of one are counted, and answered with 429 in the end.
            headers: {
              ...(authorization === undefined ? {} : { authorization }),
              "x-forwarded-for": `198.51.${Math.floor((asked += 1) / 25_600)}.${Math.floor(asked / 100) % 256}`,
            },
            ...(endpoint.method === "GET" ? {} : { body: "{}" }),
          });
          await response.body?.cancel();
          if (response.status !== 401)
            open.push(
              `${endpoint.method} ${path} with ${authorization} answered ${response.status}`,
            );
        }
      }
    }
    expect(open).toEqual([]);
  });

  test("creates no new key after an operator deleted every key", async () => {
    const { dataDirectory } = gateway;
    await gateway.terminate();
    await deleteKeys(dataDirectory);
    const second = await startProcess({ dataDirectory });
    expect(second.stdoutLines.join("\n")).not.toContain("sk-svc-v1-");
    expect((await recordsIn(dataDirectory)).llmKeys).toHaveLength(1);
  });

  test("shows its key although an earlier start failed for another reason", async () => {
    const occupied = Bun.listen({
      hostname: "127.0.0.1",
      port: 0,
      socket: { data: () => undefined },
    });
    const dataDirectory = temporaryDirectory();
    const failed = await runProcess({
      dataDirectory,
      environment: { PORT: String(occupied.port) },
    });
    occupied.stop(true);
    expect(failed.exitCode).toBe(1);
    expect(failed.stderr).toContain(
      `switchyard cannot start: port ${occupied.port} is taken by another program; end that one`,
    );
    const next = await startProcess({ dataDirectory });
    expect(next.stdoutLines.join("\n")).toMatch(/^First key {2}sk-svc-v1-\S+ {3}\(shown once\)$/m);
    expect((await recordsIn(dataDirectory)).llmKeys).toHaveLength(1);
  });
});
