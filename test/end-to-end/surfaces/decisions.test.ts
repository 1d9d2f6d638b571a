import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { at } from "../scenarios/support/at.ts";
import { expectSoundBooks } from "../scenarios/support/expect-sound-books.ts";
import { settledRow } from "../scenarios/support/settled-rows.ts";
import type { Scene } from "../scenarios/support/scene.ts";
import { testLlmKey } from "../../support/gateway.ts";
import { answering, said, startSurfaceScene, userText } from "./support/surface-scene.ts";

let scene: Scene;
beforeAll(async () => {
  // Decisions need no credits.
  scene = await startSurfaceScene({
    settings: {
      bootstrap: { llmKey: testLlmKey, managementKey: undefined, creditsNanoUsd: 0n, plan: "go" },
    },
  });
});
afterEach(() => expectSoundBooks(scene.gateway));
afterAll(() => scene.end());

const questions = {
  late: { type: "noul", instructions: "Is it late?" },
  who: {
    type: "choice",
    instructions: "Who is it?",
    criteria: { cat: "a small beast", dog: null },
  },
  bad: { type: "score", instructions: "How bad?", criteria: ["fine", "bad", "worse"] },
};

async function decide(
  changes: Record<string, unknown> = {},
  { name = "acme", path = "/decisions" } = {},
) {
  const response = await scene.gateway.post(
    path,
    { model: "acme/decide", state: { hour: 23 }, questions, ...changes },
    {
      headers: { "x-service-provider": name },
    },
  );
  return {
    status: response.status,
    headers: response.headers,
    body: (await response.json()) as Record<string, unknown>,
  };
}

const native = {
  late: { type: "noul", noul: 0.9 },
  who: { type: "choice", choice: "cat", probabilities: { cat: 0.7, dog: 0.3 }, confidence: 0.7 },
  bad: {
    type: "score",
    score: 1.1,
    legend: { 0: "fine", 1: "bad", 2: "worse" },
    probabilities: { 0: 0.2, 1: 0.5, 2: 0.3 },
    confidence: 0.5,
  },
};

test("the native dialect relays questions and answers unchanged and charges nothing", async () => {
  scene.acme.script(
    answering(() => ({ answers: native, usage: { input_tokens: 40, output_tokens: 0 } })),
  );
  const reply = await decide();
  expect(reply.body).toEqual({
    model: "acme/decide",
    answers: native,
    usage: { input_tokens: 40, output_tokens: 0, cost: 0 },
  });
  expect(scene.acme.requests.at(-1)?.path).toBe("/v1/decisions");
  expect(scene.acme.requests.at(-1)?.json()).toEqual({
    model: "decide",
    state: { hour: 23 },
    questions,
  });
  const row = await settledRow(scene.gateway, reply.headers.get("x-service-trace-id"));
  expect(row).toMatchObject({ promptTokens: 40, costNano: 0n, status: "completed" });
});

test.each([0n, 1_000_000_000n])(
  "a provider's price is not charged, with a balance of %p",
  async (creditsNanoUsd) => {
    const dear = await startSurfaceScene({
      settings: {
        bootstrap: { llmKey: testLlmKey, managementKey: undefined, creditsNanoUsd, plan: "go" },
      },
      more: [
        {
          id: "acme/dear-decider",
          surface: "decisions",
          pricing: { prompt: "9.00", completion: "9.00" },
        },
      ],
    });
    dear.acme.script(
      answering(() => ({ answers: native, usage: { input_tokens: 40, output_tokens: 0 } })),
    );
    const response = await dear.gateway.post("/decisions", {
      model: "acme/dear-decider",
      state: "s",
      questions,
    });
    expect([response.status, at(await response.json(), "usage.cost")]).toEqual([200, 0]);
    expect(
      await settledRow(dear.gateway, response.headers.get("x-service-trace-id")),
    ).toMatchObject({ promptTokens: 40, costNano: 0n });
    await dear.end();
  },
);

test("a provider's answer that omits a question returns 502", async () => {
  scene.acme.script(
    answering(() => ({ answers: { late: native.late, who: native.who }, usage: {} })),
  );
  expect(await decide()).toMatchObject({
    status: 502,
    body: { error: { code: "upstream_error" } },
  });
});

test("a chat model answers by the log probabilities of its first token", async () => {
  const candidates = (shares: Record<string, number>) => {
    const top = Object.entries(shares).map(([token, share]) => ({
      token,
      logprob: Math.log(share),
      bytes: null,
    }));
    return { logprobs: { content: [{ ...top[0], top_logprobs: top }], refusal: null } };
  };
  scene.backup.script(
    answering((body) => {
      const text = userText(body);
      if (text.includes("Is it late?"))
        return said("Yes", candidates({ Yes: 0.6, No: 0.2, Well: 0.2 }));
      return said(
        "B",
        candidates(
          text.includes("Who is it?") ? { B: 0.75, A: 0.25 } : { C: 0.5, A: 0.25, B: 0.25 },
        ),
      );
    }),
  );
  const before = scene.backup.requests.length;
  const { body } = await decide({}, { name: "backup" });
  expect(at(body, "answers.late.noul")).toBeCloseTo(0.75, 9);
  expect(at(body, "answers.who")).toMatchObject({ type: "choice", choice: "dog" });
  expect(at(body, "answers.who.probabilities.dog")).toBeCloseTo(0.75, 9);
  expect(at(body, "answers.bad.score")).toBeCloseTo(1.25, 9);
  expect(at(body, "answers.bad.legend")).toEqual({ 0: "fine", 1: "bad", 2: "worse" });
  expect(body["usage"]).toEqual({ input_tokens: 30, output_tokens: 6, cost: 0 });
  const asked = scene.backup.requests.slice(before).map((request) => request.json());
  expect(asked).toHaveLength(3);
  expect(asked[0]).toMatchObject({
    model: "decide",
    logprobs: true,
    top_logprobs: 20,
    max_tokens: 1,
    temperature: 0,
  });
});

test("a chat model without log probabilities returns 502", async () => {
  scene.backup.script(answering(() => said("Yes")));
  expect(await decide({}, { name: "backup" })).toMatchObject({
    status: 502,
    body: { error: { code: "upstream_error" } },
  });
});

describe("an invalid decision request", () => {
  test.each<[string, Record<string, unknown>, number, string]>([
    ["questions as an array", { questions: [questions.late] }, 400, "bad_request"],
    ["no questions", { questions: {} }, 400, "bad_request"],
    ["no state", { state: undefined }, 400, "bad_request"],
    ["a chat model", { model: "acme/large" }, 404, "model_unavailable"],
    ["an unknown model", { model: "acme/none" }, 404, "model_unavailable"],
  ])("%s", async (_, changes, status, code) => {
    expect(await decide(changes)).toMatchObject({ status, body: { error: { code } } });
  });

  test.each(["/chat/completions", "/messages", "/responses"])(
    "decision models are refused on %s",
    async (path) => {
      const body = {
        model: "acme/decide",
        max_tokens: 5,
        messages: [{ role: "user", content: "x" }],
        input: "x",
      };
      const response = await scene.gateway.post(path, body);
      expect(response.status).toBe(404);
      expect(await response.text()).toContain("model_unavailable");
    },
  );
});

describe("the rate limit window of decisions", () => {
  test("is separate on every plan and shared by both paths", async () => {
    const fresh = await startSurfaceScene({
      settings: {
        bootstrap: {
          llmKey: testLlmKey,
          managementKey: undefined,
          creditsNanoUsd: 1_000_000n,
          plan: "go",
        },
      },
    });
    fresh.acme.script(
      answering(() => ({
        answers: { late: native.late },
        usage: { input_tokens: 1, output_tokens: 0 },
      })),
    );
    const body = { model: "acme/decide", state: "s", questions: { late: questions.late } };
    const post = (path: string) =>
      fresh.gateway.post(path, body, { headers: { "x-service-provider": "acme" } });
    const first = await Promise.all(
      Array.from({ length: 60 }, (_, index) => post(index % 2 === 0 ? "/decisions" : "/systemone")),
    );
    expect(new Set(first.map(({ status }) => status))).toEqual(new Set([200]));
    expect([
      first[0]?.headers.get("x-ratelimit-tier"),
      first[0]?.headers.get("x-ratelimit-limit"),
    ]).toEqual(["decision", "60"]);
    const refused = await post("/systemone");
    expect([
      refused.status,
      refused.headers.get("retry-after"),
      at(await refused.json(), "error.code"),
    ]).toEqual([429, "60", "rate_limit_exceeded"]);
    const embedded = await fresh.gateway.post("/embeddings", { model: "acme/none", input: "x" });
    expect([embedded.status, embedded.headers.get("x-ratelimit-tier")]).toEqual([404, "go"]);
    await fresh.end();
  });
});
