import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { VendorRule } from "../../../support/strict-vendors/rule.ts";
import { ask, chatTool } from "../../../support/strict-vendors/samples.ts";
import { nameOf, vendorRules } from "../../../support/strict-vendors/vendor-rules.ts";
import { clientsOwn } from "./clients-own.ts";
import { startStrictScene, type StrictScene } from "./strict-scene.ts";
import { translated, unreached } from "./translated.ts";

let scene: StrictScene;
beforeAll(async () => {
  scene = await startStrictScene();
});
afterAll(() => scene.end());

const paths: Readonly<Record<string, string>> = {
  chat: "/chat/completions",
  completions: "/completions",
  responses: "/responses",
  messages: "/messages",
};

const isNative = ({ endpoint }: VendorRule): boolean => endpoint in paths;
const isClientsOwn = (rule: VendorRule): boolean =>
  clientsOwn.some((pattern) => pattern.test(nameOf(rule)));
const rows = (rules: readonly VendorRule[]) => rules.map((rule) => [nameOf(rule), rule] as const);

/** Sends the request that a rule refuses, in the vendor's own dialect, through the gateway. */
async function askNative({ vendor, endpoint, violates }: VendorRule): Promise<Response> {
  scene.upstream.forget();
  const model = scene.idOf(vendor, violates.model);
  return scene.ask(paths[endpoint] ?? "", { ...violates.body, model }, vendor);
}

describe("a client of the vendor's own dialect", () => {
  test.each(rows(vendorRules.filter((rule) => isNative(rule) && !isClientsOwn(rule))))(
    "is not refused by %s",
    async (_, rule) => {
      const answer = await askNative(rule);
      expect(scene.upstream.refusals.flatMap(({ rules }) => rules)).toEqual([]);
      expect(answer.status).toBe(200);
    },
  );

  test.each(rows(vendorRules.filter((rule) => isNative(rule) && isClientsOwn(rule))))(
    "reads why its own request was refused by %s",
    async (_, rule) => {
      const answer = await askNative(rule);
      expect(answer.status).toBeGreaterThanOrEqual(400);
      expect(answer.status).toBeLessThan(500);
      const { error } = (await answer.json()) as { error: { message: string } };
      expect(error.message).not.toBe("");
    },
  );
});

describe("a chat client before another dialect", () => {
  test.each(Object.entries(translated))("is not refused by %s", async (name, body) => {
    const rule = vendorRules.find((one) => nameOf(one) === name);
    if (rule === undefined) throw new Error(`there is no rule ${name}`);
    scene.upstream.forget();
    const model = scene.idOf(rule.vendor, rule.violates.model);
    const answer = await scene.ask("/chat/completions", { ...body, model }, rule.vendor);
    expect(scene.upstream.refusals.flatMap(({ rules }) => rules)).toEqual([]);
    expect(answer.status).toBe(200);
    expect(scene.upstream.received.at(-1)?.endpoint).toBe(rule.endpoint);
  });
});

test("several answers with tools are asked for without reasoning where it excludes them", async () => {
  scene.upstream.forget();
  const body = ask({ tools: [chatTool()], n: 2, reasoning_effort: "high" });
  const model = scene.idOf("openai", "gpt-5.5");
  const answer = await scene.ask("/chat/completions", { ...body, model }, "openai");
  expect(scene.upstream.refusals.flatMap(({ rules }) => rules)).toEqual([]);
  expect(answer.status).toBe(200);
  expect(scene.upstream.received.at(-1)).toMatchObject({
    endpoint: "chat",
    body: { n: 2, reasoning_effort: "none" },
  });
  expect(answer.headers.get("x-service-translation-loss")).toBe("reasoning_effort");
});

test("every rule is met by a test", () => {
  const unmet = vendorRules.filter(
    (rule) => !isNative(rule) && !(nameOf(rule) in translated) && !unreached.includes(nameOf(rule)),
  );
  expect(unmet.map(nameOf)).toEqual([]);
});
