import { afterEach, describe, expect, test } from "bun:test";
import type { ProbeOutcome } from "../../../src/byok/key-prober.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { testManagementKey } from "../../support/gateway.ts";
import { chatError } from "../../support/upstream/openai-chat-fixtures.ts";
import { json } from "../../support/upstream/steps.ts";
import { at } from "../api/at.ts";
import { errorOf } from "../api/error-envelope-of.ts";
import { engines, strangersKey } from "../api/two-workspaces.ts";
import { eventually } from "./support/eventually.ts";
import { expectSoundBooks } from "./support/expect-sound-books.ts";
import {
  startProviderKeys,
  strangersLlmKey,
  type ProviderKeyScene,
} from "./support/provider-keys.ts";

const donated = "sk-donated-key-number-one";
const another = "sk-donated-key-number-two";
const costUsd = 0.018;
const solo = { model: "solo/large" };

let scene: ProviderKeyScene | undefined;
afterEach(async () => {
  await scene?.stop();
  scene = undefined;
});
const start = async (
  options?: Parameters<typeof startProviderKeys>[0],
): Promise<ProviderKeyScene> => (scene = await startProviderKeys(options));

/** Adds a key of the first workspace and donates it. */
async function donate(
  { add, manage }: ProviderKeyScene,
  apiKey: string,
  fields: Record<string, unknown> = {},
): Promise<string> {
  const id = await add(apiKey, { provider_id: "solo" });
  expect(
    (await manage("POST", "/byok/donated", { key_id: id, consent: true, ...fields })).status,
  ).toBe(200);
  return id;
}

/** Asks as a workspace that has no key and no credits. */
const asStranger = (
  { chat }: ProviderKeyScene,
  fields: Record<string, unknown> = {},
): Promise<Response> => chat({ ...solo, ...fields }, strangersLlmKey);

test("a donated key serves a workspace without a key, free of charge, and reveals nothing of its owner", async () => {
  const it = await start();
  const id = await donate(it, donated);
  for (const stream of [false, true]) {
    const response = await asStranger(it, { stream });
    const text = await response.text();
    expect(response.status).toBe(200);
    expect(response.headers.get("x-service-credential-source")).toBe("pool");
    expect(text).toContain('"cost":0');
    const path = `/generation/gen_${response.headers.get("x-service-trace-id") ?? ""}`;
    const shown = await it.gateway.get(path, { authorization: `Bearer ${strangersLlmKey}` });
    const generation = await shown.text();
    expect(JSON.parse(generation)).toMatchObject({
      data: { is_byok: false, credential_source: "pool", provider_key_id: null, total_cost: 0 },
    });
    const everything = JSON.stringify([...response.headers]) + text + generation;
    for (const secret of [id, donated, "ws_own"]) expect(everything).not.toContain(secret);
  }
  expect(it.keysSent()).toEqual([donated, donated]);
  expect(await it.show(id)).toMatchObject({ donation: { used_today: 2 * costUsd } });
  await expectSoundBooks(it.gateway);
});

test("for its owner the same key counts as an own key, with the headers of an own key", async () => {
  const it = await start();
  await donate(it, donated);
  expect((await asStranger(it)).headers.get("x-service-credential-source")).toBe("pool");
  expect((await it.chat(solo)).headers.get("x-service-credential-source")).toBe("own_byok");
  expect((await asStranger(it)).headers.get("x-service-credential-source")).toBe("pool");
});

test("a donated key is not used when the platform has a credential or the caller a key", async () => {
  const it = await start();
  const id = await it.add(donated);
  await it.manage("POST", "/byok/donated", { key_id: id, consent: true });
  expect((await it.chat({}, strangersLlmKey)).status).toBe(402);
  await donate(it, donated);
  await it.add(another, { provider_id: "solo" }, strangersKey);
  expect((await asStranger(it)).headers.get("x-service-credential-source")).toBe("own_byok");
  it.upstream.enqueue(json(chatError("no"), { status: 401 }));
  expect((await asStranger(it)).status).toBe(502);
  expect(it.keysSent()).toEqual([another, another]);
});

test("a donated key does not serve requests that deny data collection, or models without a price", async () => {
  const it = await start();
  await donate(it, donated);
  expect((await asStranger(it, { provider: { data_collection: "deny" } })).status).toBe(404);
  expect((await asStranger(it, { provider: { zdr: true } })).status).toBeGreaterThanOrEqual(403);
  expect((await asStranger(it, { model: "solo/bare" })).status).toBe(404);
  expect(it.keysSent()).toEqual([]);
});

test("a donated key stops serving others once it is withdrawn, paused, disabled or deleted", async () => {
  const it = await start();
  const id = await donate(it, donated);
  const steps: [string, string, unknown?][] = [
    ["PATCH", `/byok/donated/${id}`, { paused: true }],
    ["PATCH", `/byok/donated/${id}`, { paused: false }],
    ["PATCH", `/auth/byok/keys/${id}`, { enabled: false }],
    ["PATCH", `/auth/byok/keys/${id}`, { enabled: true }],
    ["DELETE", `/byok/donated/${id}`],
    ["POST", "/byok/donated", { key_id: id, consent: true }],
    ["DELETE", `/auth/byok/keys/${id}`],
  ];
  const statuses: number[] = [];
  for (const [method, path, body] of steps) {
    expect((await it.manage(method, path, body)).status).toBe(200);
    statuses.push((await asStranger(it)).status);
  }
  expect(statuses).toEqual([404, 200, 404, 200, 404, 200, 404]);
});

test("models reachable by donated keys are listed for keys, but not anonymously", async () => {
  const it = await start();
  await donate(it, donated);
  const listed = async (headers: Record<string, string>): Promise<unknown[]> =>
    (
      at(
        await (await fetch(`${it.gateway.baseUrl}/models`, { headers })).json(),
        "data",
      ) as unknown[]
    ).map((model) => at(model, "id"));
  expect(await listed({ authorization: `Bearer ${strangersLlmKey}` })).toContain("solo/large");
  expect(await listed({})).not.toContain("solo/large");
});

test.each([
  [401, "Incorrect API key provided by org-of-the-donor"],
  [402, "org-of-the-donor has nothing left"],
])(
  "a donated key refused with %p is paused, another key serves, and a successful probe restores it",
  async (status, message) => {
    const clock = new FakeClock();
    const outcomes: ProbeOutcome[] = ["refused", "unknown", "accepted"];
    const probes: string[] = [];
    const it = await start({
      tools: {
        clock,
        probeKey: ({ secret }) => {
          probes.push(secret);
          return Promise.resolve({
            outcome: outcomes[probes.length - 1] ?? "accepted",
            reason: null,
          });
        },
      },
    });
    const id = await donate(it, donated);
    await donate(it, another);
    it.upstream.enqueue(json(chatError(message), { status }));
    expect((await asStranger(it)).status).toBe(200);
    expect(it.keysSent()).toEqual([donated, another]);
    await eventually(
      "the pause is stored",
      async () => at(await it.show(id), "donation.paused") === true,
    );
    expect(await it.show(id)).toMatchObject({
      kind: "donated",
      donation: { pause_reason: "credential" },
    });
    for (let request = 0; request < 2; request += 1) await asStranger(it);
    expect(it.keysSent()).toEqual([another, another]);

    const { prober } = it.gateway.app;
    await prober.probeDue();
    expect(probes).toEqual([]);
    const paused: unknown[] = [];
    for (const minutes of [5, 9, 1, 20]) {
      clock.advance(minutes * 60_000);
      await prober.probeDue();
      paused.push([probes.length, at(await it.show(id), "donation.paused")]);
    }
    expect(paused).toEqual([
      [1, true],
      [1, true],
      [2, true],
      [3, false],
    ]);
    expect(new Set(probes)).toEqual(new Set([donated]));
    await asStranger(it);
    expect(it.keysSent()).toEqual([donated]);
  },
);

test("a provider's error message about a donated key is hidden from other workspaces", async () => {
  const it = await start();
  await donate(it, donated);
  for (const [status, code] of [
    [429, "rate_limit_exceeded"],
    [402, "upstream_error"],
    [401, "upstream_401"],
  ] as const) {
    await it.manage(
      "PATCH",
      `/byok/donated/${String(at(await it.show(await onlyKey(it)), "id"))}`,
      { paused: false },
    );
    it.upstream.enqueue(json(chatError("org-of-the-donor"), { status }));
    const error = await errorOf(await asStranger(it));
    expect(error.code).toBe(code);
    expect(error.status).not.toBe(402);
    expect(JSON.stringify(error)).not.toContain("org-of-the-donor");
    const isPaused = async (): Promise<boolean> =>
      at(await it.show(await onlyKey(it)), "donation.paused") === true;
    if (status !== 429) await eventually("the verdict is stored", isPaused);
  }
});

const onlyKey = async ({ manage }: ProviderKeyScene): Promise<string> =>
  String(
    at(
      await (await manage("GET", "/auth/byok", undefined, testManagementKey)).json(),
      "data.0.keys.0.id",
    ),
  );

describe.each(engines)("the daily limit of a donation, on %s", (_, freshUrl) => {
  test("limits what others use in 24 hours, also in parallel, but not what the owner uses", async () => {
    const it = await start({ storageUrl: await freshUrl() });
    const id = await donate(it, donated, { daily_limit: costUsd / 2 });
    const answers = await Promise.all(Array.from({ length: 10 }, () => asStranger(it)));
    expect(answers.map(({ status }) => status).sort()).toEqual([
      200,
      ...Array.from({ length: 9 }, () => 404),
    ]);
    expect((await it.chat(solo)).status).toBe(200);
    await it.gateway.app.storage.commits.flush();
    await it.restart();
    expect(await it.show(id)).toMatchObject({
      status: "active",
      donation: { used_today: costUsd, daily_limit: costUsd / 2 },
    });
    expect((await asStranger(it)).status).toBe(404);
    await it.manage("PATCH", `/byok/donated/${id}`, { daily_limit: 1 });
    expect((await asStranger(it)).status).toBe(200);
    await expectSoundBooks(it.gateway);
  }, 240_000);

  test("the quota of a key limits its owner and others together", async () => {
    const it = await start({ storageUrl: await freshUrl() });
    const id = await donate(it, donated);
    await it.manage("PATCH", `/auth/byok/keys/${id}`, {
      quota: { limit: 1.5 * costUsd, reset: "monthly" },
    });
    expect((await asStranger(it)).status).toBe(200);
    expect((await it.chat(solo)).status).toBe(200);
    expect((await asStranger(it)).status).toBe(404);
    expect((await it.chat(solo)).status).toBe(404);
  }, 240_000);
});
