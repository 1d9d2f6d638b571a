import { afterAll, expect, test } from "bun:test";
import { join } from "node:path";
import { testLlmKey, testManagementKey } from "../../support/gateway.ts";
import { endProcesses, startProcess, type GatewayProcess } from "../../support/process.ts";
import { programPath } from "../../support/program.ts";
import { startFaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { at } from "../api/at.ts";
import { acmeYaml } from "./support/acme-yaml.ts";
import { getJson, postChat } from "./support/ask.ts";
import { bootstrapVariables } from "./support/bootstrap-variables.ts";
import { pollUntil } from "../../support/poll-until.ts";

const command = [
  process.execPath,
  "--preload",
  join(import.meta.dir, "..", "..", "support", "hours-on-signal.ts"),
  programPath("main"),
];

afterAll(endProcesses);

/** Ids of the answers to so many requests, one after the other. */
async function ask(gateway: GatewayProcess, count: number): Promise<string[]> {
  const ids: string[] = [];
  while (ids.length < count) {
    const answer = await postChat(gateway);
    expect(answer.status).toBe(200);
    ids.push(String(at(await answer.json(), "id")));
  }
  return ids;
}

async function isKept({ url }: GatewayProcess, id: string): Promise<boolean> {
  const response = await fetch(`${url}/api/v1/generation?id=${id}`, {
    headers: { authorization: `Bearer ${testLlmKey}` },
  });
  await response.text();
  return response.status === 200;
}

/** Lets an hour pass, and resolves when the record is gone. */
async function deleteUntil(gateway: GatewayProcess, id: string): Promise<void> {
  gateway.child.kill("SIGUSR2");
  await pollUntil(async () => !(await isKept(gateway, id)));
}

test("retention.log_budget_gb deletes the oldest records and logs it, and charges and usage stay", async () => {
  const upstream = await startFaultUpstream();
  const yaml = acmeYaml(upstream.baseUrl, "retention: { log_budget_gb: 0.00002 }\n");
  const gateway = await startProcess({ command, environment: bootstrapVariables, yaml });
  const first = await ask(gateway, 80);
  const shown = async (): Promise<unknown[]> => [
    // Without what was spent today, since the day may end meanwhile.
    { ...Object(await getJson(gateway, "/credits")), today_cost: null },
    at(await getJson(gateway, "/analytics/usage?interval=day", testManagementKey), "data"),
  ];
  const before = await shown();
  expect(await isKept(gateway, first[0] ?? "")).toBe(true);
  await deleteUntil(gateway, first[0] ?? "");
  await gateway.stderrHas("generation records take more than retention.log_budget_gb");
  expect(await isKept(gateway, first.at(-1) ?? "")).toBe(true);
  expect(await shown()).toEqual(before);
  const second = await ask(gateway, 80);
  await deleteUntil(gateway, first.at(-1) ?? "");
  expect(await isKept(gateway, second.at(-1) ?? "")).toBe(true);
  await gateway.terminate();
  upstream.stop();
  const told = gateway.stderrText
    .split("\n")
    .filter((line) => line.includes("log_budget_gb"))
    .map((line) => JSON.parse(line) as unknown);
  expect(told).toEqual([
    expect.objectContaining({
      level: "warn",
      records: expect.any(Number),
      before: expect.stringMatching(/^\d{4}-.*Z$/),
      budget_bytes: 20_000,
    }),
  ]);
}, 240_000);
