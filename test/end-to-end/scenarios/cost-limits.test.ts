import { afterEach, describe, expect, test } from "bun:test";
import { testLlmKey, testManagementKey } from "../../support/gateway.ts";
import { outputCapIn, talkingStream } from "../../support/talking-stream.ts";
import { chatAnswer } from "../../support/upstream/healthy-chat.ts";
import type { RecordedRequest } from "../../support/upstream/recorded-request.ts";
import { head, type Script } from "../../support/upstream/steps.ts";
import { at } from "./support/at.ts";
import { readReply, type ChatReply } from "./support/chat-reply.ts";
import { createKey } from "./support/create-key.ts";
import { eventually } from "./support/eventually.ts";
import { chatRequest, startScene, type Scene, type SceneOptions } from "./support/scene.ts";
import { settledRow, settledRows } from "./support/settled-rows.ts";
import { withTables } from "../../../src/platform/storage/with-tables.ts";

let scene: Scene;
afterEach(() => scene.end());

const start = (creditsNanoUsd: bigint, options: SceneOptions = {}): Promise<Scene> =>
  startScene({
    ...options,
    settings: {
      bootstrap: {
        llmKey: testLlmKey,
        managementKey: testManagementKey,
        creditsNanoUsd,
        plan: "enterprise",
      },
      ...options.settings,
    },
  });

/** Uses all that its cap allows, and no more than `most`. */
const upTo =
  (most: number) =>
  (request: RecordedRequest): Script => {
    const used = Math.min(most, outputCapIn(request) ?? most);
    return chatAnswer(request, {
      finishReason: used === most ? "stop" : "length",
      usage: { prompt_tokens: 20, completion_tokens: used, total_tokens: 20 + used },
    });
  };

interface Asked extends ChatReply {
  traceId: string | null;
  cap: string | null;
  retryAfter: string | null;
}

async function ask(fields: Record<string, unknown> = {}, secret = testLlmKey): Promise<Asked> {
  const response = await scene.gateway.post("/chat/completions", chatRequest(fields), {
    headers: { authorization: `Bearer ${secret}` },
  });
  const { headers } = response;
  return {
    ...(await readReply(response)),
    traceId: headers.get("x-service-trace-id"),
    cap: headers.get("x-service-output-cap"),
    retryAfter: headers.get("retry-after"),
  };
}

const uncollected = async (): Promise<bigint> =>
  (await settledRows(scene.gateway)).reduce(
    (sum, { detail }) => sum + BigInt(detail.uncollectedNanoUsd ?? 0),
    0n,
  );

describe("a request cannot exceed its key's limit and its balance", () => {
  test("a key with a limit of 0.001 gets the output limit that 0.001 pays for, in a response header", async () => {
    scene = await start(10_000_000_000n);
    scene.acme.script(upTo(93_000));
    const secret = await createKey(scene.gateway, { limit: 0.001 });
    const reply = await ask({ max_tokens: 100_000 }, secret);
    expect(reply.status).toBe(200);
    const [request] = scene.acme.requests;
    expect([Number(reply.cap), outputCapIn(request as RecordedRequest)]).toEqual([
      Number(reply.cap),
      Number(reply.cap),
    ]);
    expect(Number(reply.cap)).toBeGreaterThan(600);
    const row = await settledRow(scene.gateway, reply.traceId);
    expect(row).toMatchObject({ finishReason: "length", detail: { outputCap: Number(reply.cap) } });
    expect(row?.costNano).toBeGreaterThan(900_000n);
    expect(row?.costNano).toBeLessThanOrEqual(1_000_000n);
    expect(await uncollected()).toBe(0n);
    const record = await (await scene.gateway.get(`/generation/gen_${reply.traceId}`)).json();
    expect(at(record, "data.output_cap")).toBe(Number(reply.cap));
  });

  test("a balance of 0.000001 gets a 402 with the worst-case cost and the remaining balance", async () => {
    scene = await start(1_000n);
    for (const stream of [false, true]) {
      const reply = await ask({ max_tokens: 100_000, stream });
      expect([reply.status, reply.retryAfter]).toEqual([402, null]);
      expect(at(reply.events[0], "error")).toMatchObject({
        code: "insufficient_balance",
        metadata: {
          reason: "balance_too_low",
          available_usd: 0.000001,
          held_usd: 0,
          affordable_output_tokens: 0,
        },
      });
      expect(Number(at(reply.events[0], "error.metadata.worst_case_usd"))).toBeCloseTo(0.15, 3);
      expect(String(at(reply.events[0], "error.message"))).toContain(
        "0.000001 USD is left of the balance",
      );
    }
    expect(scene.acme.requests).toHaveLength(0);
  });

  test("usage above the output limit is charged up to the key's limit, and the rest is uncollected", async () => {
    scene = await start(10_000_000_000n);
    scene.acme.script((request) =>
      chatAnswer(request, {
        usage: { prompt_tokens: 20, completion_tokens: 2_700, total_tokens: 2_720 },
      }),
    );
    const secret = await createKey(scene.gateway, { limit: 0.0001 });
    const reply = await ask({ max_tokens: 5 }, secret);
    expect(reply.status).toBe(200);
    const row = await settledRow(scene.gateway, reply.traceId);
    expect([row?.costNano, row?.detail.uncollectedNanoUsd]).toEqual([
      100_000n,
      String(20 * 500 + 2_700 * 1_500 - 100_000),
    ]);
    const key = await scene.gateway.get("/key", { authorization: `Bearer ${secret}` });
    expect(await key.json()).toMatchObject({ data: { limit_remaining: 0, usage: 0.0001 } });
    expect((await ask({ max_tokens: 5 }, secret)).status).toBe(402);
  });

  test("a request within an eighth of the balance is forwarded unchanged", async () => {
    scene = await start(10_000_000_000n);
    const reply = await ask({ max_tokens: 100_000 });
    expect([
      reply.status,
      reply.cap,
      outputCapIn(scene.acme.requests[0] as RecordedRequest),
    ]).toEqual([200, null, 100_000]);
  });

  test("with require_parameters, a request that needs a lower limit returns 402 and is not sent", async () => {
    scene = await start(1_000_000n);
    const provider = { order: ["acme"], require_parameters: true };
    expect(await ask({ max_tokens: 100_000, provider })).toMatchObject({ status: 402, cap: null });
    expect(scene.acme.requests).toHaveLength(0);
    expect(await ask({ max_tokens: 100, provider })).toMatchObject({ status: 200, cap: null });
  });

  test("several choices share the hold", async () => {
    scene = await start(1_000_000n);
    const [one, four] = [
      await ask({ max_tokens: 100_000 }),
      await ask({ max_tokens: 100_000, n: 4 }),
    ];
    const [alone, shared] = [Number(one.cap), Number(four.cap)];
    expect(shared * 4).toBeLessThanOrEqual(alone);
    expect(shared * 4).toBeGreaterThan(alone * 0.9);
  });

  test("a fallback gets the output limit that its own price affords", async () => {
    scene = await start(1_000_000n, { withBackup: true });
    scene.acme.script([head({ status: 503, framing: { contentLength: 0 } })]);
    const reply = await ask({ max_tokens: 100_000 });
    expect(reply.status).toBe(200);
    const [first, second] = [scene.acme.requests[0], scene.backup.requests[0]].map((request) =>
      outputCapIn(request as RecordedRequest),
    );
    expect(second).toBe(Number(reply.cap));
    expect(Math.abs((first as number) / (second as number) - 2)).toBeLessThan(0.05);
  });
});

describe("budgets that block", () => {
  const budget = async (fields: object): Promise<string> => {
    const made = await scene.gateway.post(
      "/budgets",
      { name: "b", action: "block", ...fields },
      {
        headers: { authorization: `Bearer ${testManagementKey}` },
      },
    );
    expect(made.status).toBe(200);
    return String(at(await made.json(), "data.id"));
  };

  test("a budget lowers the output limit to what is left of it", async () => {
    scene = await start(10_000_000_000n);
    scene.acme.script(upTo(93_000));
    await budget({ limit: 0.001 });
    const reply = await ask({ max_tokens: 100_000 });
    expect(reply.status).toBe(200);
    expect(Number(reply.cap)).toBeGreaterThan(600);
    expect((await settledRow(scene.gateway, reply.traceId))?.costNano).toBeLessThanOrEqual(
      1_000_000n,
    );
    expect(await uncollected()).toBe(0n);
  });

  test("a provider with a spent budget is skipped when another can serve", async () => {
    scene = await start(10_000_000_000n, { withBackup: true });
    scene.acme.script(upTo(93_000));
    const id = await budget({ limit: 0.00001, scope: "provider", subject: "acme" });
    const reply = await ask({ max_tokens: 100 });
    expect([reply.status, scene.acme.requests.length, scene.backup.requests.length]).toEqual([
      200, 0, 1,
    ]);
    const refused = await ask({ max_tokens: 100, provider: { only: ["acme"] } });
    expect(refused.status).toBe(402);
    expect(at(refused.events[0], "error.metadata")).toMatchObject({
      reason: "budget_reached",
      budget_id: id,
      budget_subject: "acme",
    });
  });
});

/** 75 USD per million tokens of output, as the dearest of today's models. */
const dear = {
  models: [
    {
      id: "acme/large",
      context_length: 200_000,
      max_completion_tokens: 128_000,
      pricing: { prompt: "15", completion: "75" },
    },
  ],
};

const finishOf = ({ events }: ChatReply): unknown =>
  events.map((event) => at(event, "choices.0.finish_reason")).findLast((reason) => reason);

describe("an agent that always requests 128,000 tokens", () => {
  test("is served ten times in parallel with 5 USD left on a model of 75 USD per million", async () => {
    scene = await start(5_000_000_000n, { acme: dear });
    const gate = scene.acme.gate();
    scene.acme.script((request) => [gate, ...talkingStream(1_000)(request)]);
    const asking = Array.from({ length: 10 }, () => ask({ max_tokens: 128_000, stream: true }));
    await scene.acme.waitForRequest(10);
    gate.open();
    const replies = await Promise.all(asking);
    expect(replies.map(({ status }) => status)).toEqual(Array.from({ length: 10 }, () => 200));
    expect(replies.map(finishOf)).toEqual(Array.from({ length: 10 }, () => "stop"));
    for (const { cap } of replies) expect(Number(cap)).toBeGreaterThan(20_000);
    expect(await uncollected()).toBe(0n);
  });

  test("has streams ended with finish reason length when their holds cannot grow, within the balance", async () => {
    scene = await start(5_000_000_000n, { acme: dear });
    const gate = scene.acme.gate();
    scene.acme.script((request) => [gate, ...talkingStream(60_000)(request)]);
    const asking = Array.from({ length: 10 }, () => ask({ max_tokens: 128_000, stream: true }));
    await scene.acme.waitForRequest(10);
    gate.open();
    const replies = await Promise.all(asking);
    expect(replies.map(({ status }) => status)).toEqual(Array.from({ length: 10 }, () => 200));
    expect(replies.map(finishOf)).toContain("length");
    await eventually("every hold is back", () => scene.gateway.app.ledger.openHoldCount === 0);
    const rows = await settledRows(scene.gateway);
    expect(rows.reduce((sum, { costNano }) => sum + costNano, 0n)).toBeLessThanOrEqual(
      5_000_000_000n,
    );
    expect(await uncollected()).toBe(0n);
  });
});

test("50 parallel whole responses on 20 USD are served, or refused with a retry time", async () => {
  scene = await start(20_000_000_000n, { acme: dear });
  const gate = scene.acme.gate();
  scene.acme.script((request) => [gate, ...upTo(128_000)(request)]);
  let answered = 0;
  const asking = Array.from({ length: 50 }, async () => {
    const reply = await ask();
    answered += 1;
    return reply;
  });
  await eventually("all are held or refused", () => answered + scene.acme.requests.length >= 50);
  gate.open();
  const replies = await Promise.all(asking);
  const refused = replies.filter(({ status }) => status !== 200);
  expect(refused.map(({ status, retryAfter }) => [status, Number(retryAfter) > 0])).toEqual(
    refused.map(() => [402, true]),
  );
  for (const { events } of refused)
    expect(Number(at(events[0], "error.metadata.held_usd"))).toBeGreaterThan(19);
  expect(replies.length - refused.length).toBeGreaterThan(20);
  const rows = await settledRows(scene.gateway);
  expect(rows.reduce((sum, { costNano }) => sum + costNano, 0n)).toBeLessThanOrEqual(
    20_000_000_000n,
  );
  expect(await uncollected()).toBe(0n);
});

test("a background response without credits is refused before it is queued", async () => {
  scene = await start(0n);
  const response = await scene.gateway.post("/responses", {
    model: "acme/large",
    input: "Hello",
    background: true,
  });
  expect(response.status).toBe(402);
  expect(await response.json()).toMatchObject({ error: { code: "insufficient_balance" } });
  const stored = await withTables<{ stored_responses: { id: string } }>(
    scene.gateway.app.storage.database,
  )
    .selectFrom("stored_responses")
    .select("id")
    .execute();
  expect([stored, scene.gateway.app.ledger.openHoldCount]).toEqual([[], 0]);
});
