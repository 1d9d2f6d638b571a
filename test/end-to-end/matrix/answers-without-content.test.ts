import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { ScriptedDialect as DialectId } from "../../support/scripted-upstream/scripted-upstream.ts";
import { json, split, stream, type Script } from "../../support/upstream/steps.ts";
import { settledRows } from "../scenarios/support/settled-rows.ts";
import { eventsOfWhole } from "./pairs/streamed-answer.ts";
import { chat, gemini, message, response } from "./pairs/upstream-heads.ts";
import { type Fields, fieldsOf, listOf } from "./support/json-value.ts";
import type { AnyClientName } from "./support/client-dialect.ts";
import { model, providerId, startMatrix, type MatrixScene } from "./support/matrix-scene.ts";
import { allPairs, nameOf, type Pair } from "./support/pairs.ts";
import type { Reply } from "./support/reply.ts";

let scene: MatrixScene;
beforeAll(async () => {
  scene = await startMatrix();
});
afterAll(() => scene.end());

/** An answer without anything to show, in each dialect of upstreams. */
type Answers = Readonly<Record<DialectId, Fields>>;

const thought = { id: "rs_1", type: "reasoning", summary: [{ type: "summary_text", text: "Hm." }] };
const cut = { status: "incomplete", incomplete_details: { reason: "max_output_tokens" } };

const nothing: Answers = {
  "openai-chat": chat({ message: { role: "assistant", content: null }, finish_reason: "stop" }),
  "anthropic-messages": message([], { stop_reason: "end_turn" }),
  "openai-responses": response([]),
  "google-generate": gemini([], "STOP"),
};

const onlyThoughts: Answers = {
  "openai-chat": chat({
    message: { role: "assistant", content: null, reasoning_content: "Hm." },
    finish_reason: "stop",
  }),
  "anthropic-messages": message([{ type: "thinking", thinking: "Hm.", signature: "c2Vh" }], {
    stop_reason: "end_turn",
  }),
  "openai-responses": response([thought]),
  "google-generate": gemini([{ text: "Hm.", thought: true }], "STOP"),
};

const spentOnThoughts: Answers = {
  "openai-chat": chat({
    message: { role: "assistant", content: "", reasoning_content: "Hm." },
    finish_reason: "length",
  }),
  "anthropic-messages": message([{ type: "thinking", thinking: "Hm.", signature: "c2Vh" }], {
    stop_reason: "max_tokens",
  }),
  "openai-responses": response([thought], cut),
  "google-generate": gemini([{ text: "Hm.", thought: true }], "MAX_TOKENS"),
};

const filtered: Answers = {
  "openai-chat": chat({
    message: { role: "assistant", content: null },
    finish_reason: "content_filter",
  }),
  "anthropic-messages": message([], { stop_reason: "refusal" }),
  "openai-responses": response([], {
    status: "incomplete",
    incomplete_details: { reason: "content_filter" },
  }),
  "google-generate": {
    responseId: "g1",
    modelVersion: "large-v2",
    promptFeedback: { blockReason: "SAFETY" },
    usageMetadata: { promptTokenCount: 11, candidatesTokenCount: 7, totalTokenCount: 18 },
  },
};

const streamOf = (upstream: DialectId, answer: Fields): Script => {
  if (answer.promptFeedback !== undefined)
    return stream([{ kind: "body", bytes: Buffer.from(`data: ${JSON.stringify(answer)}\n\n`) }]);
  return stream(eventsOfWhole(upstream, answer));
};

/** How the answer comes: whole, streamed event by event, streamed all in one segment. */
const manners = ["whole", "streamed", "in one segment"] as const;

interface Asking {
  answers: Answers;
  manner: (typeof manners)[number];
}

async function ask({ client, upstream }: Pair, { answers, manner }: Asking): Promise<Reply> {
  const events = streamOf(upstream, answers[upstream]);
  const script = {
    whole: json(answers[upstream]),
    streamed: events,
    "in one segment": [split([], events as never)],
  }[manner];
  scene.upstreams[upstream].script(script);
  return scene.ask(
    client,
    { ...client.ask("Go"), stream: manner !== "whole" },
    { providers: [providerId(upstream)] },
  );
}

const capFields: Readonly<Record<AnyClientName, string>> = {
  "openai-chat": "max_tokens",
  "anthropic-messages": "max_tokens",
  "openai-responses": "max_output_tokens",
  "google-generate": "maxOutputTokens",
};

/** Returns the field that an error names; Google has it among the details. */
function paramOf({ body }: Reply): unknown {
  const { param, details } = fieldsOf(body.error);
  const violations = listOf(details).flatMap(({ fieldViolations: list }) => listOf(list));
  return param ?? violations[0]?.field;
}

const rowOf = async ({ headers }: Reply) =>
  (await settledRows(scene.gateway)).find(
    ({ id }) => id === `gen_${headers.get("x-service-trace-id")}`,
  );

describe.each(allPairs.map((pair) => [nameOf(pair), pair] as const))("%s", (_, pair) => {
  test.each(manners)(
    "an empty answer returns 502 empty_stream and is not charged: %s",
    async (manner) => {
      const reply = await ask(pair, { answers: nothing, manner });
      expect([reply.status, reply.errors[0]?.code, reply.breaches]).toEqual([
        502,
        "empty_stream",
        [],
      ]);
      expect(reply.errors[0]?.metadata).toMatchObject({
        fault: "upstream",
        upstream_backend: providerId(pair.upstream),
      });
      // The contract: retryable.
      expect(reply.headers.get("x-should-retry")).toBeNull();
      expect(await rowOf(reply)).toBeUndefined();
    },
  );

  test.each(manners)(
    "an answer of only reasoning ends with stop and is charged: %s",
    async (manner) => {
      const reply = await ask(pair, { answers: onlyThoughts, manner });
      expect([reply.status, reply.thought, reply.said, reply.finish, reply.errors]).toEqual([
        200,
        "Hm.",
        "",
        "stop",
        [],
      ]);
      expect([reply.endings, reply.breaches, reply.costUsd]).toEqual([1, [], 0.000016]);
      expect((await rowOf(reply))?.costNano).toBe(16_000n);
    },
  );

  test("a whole answer cut during reasoning returns max_tokens_too_small with the field, and is charged", async () => {
    const reply = await ask(pair, { answers: spentOnThoughts, manner: "whole" });
    expect([reply.status, reply.errors[0]?.code, reply.breaches]).toEqual([
      400,
      "max_tokens_too_small",
      [],
    ]);
    const told = ["x-service-provider-chain", "x-service-model", "x-service-credential-source"].map(
      (name) => reply.headers.get(name),
    );
    expect(told).toEqual([providerId(pair.upstream), model, "platform"]);
    expect(reply.headers.get("server-timing")).toContain("dur=");
    const field = capFields[pair.client.name];
    expect([paramOf(reply), reply.headers.get("x-should-retry")]).toEqual([field, "false"]);
    expect(String(reply.errors[0]?.message)).toContain(
      `Raise ${field} to at least 256, or set stream: true`,
    );
    expect(String(reply.errors[0]?.message)).toContain(
      "11 input and 7 output tokens, and $0.000016 was charged",
    );
    expect(reply.errors[0]?.metadata).toMatchObject({
      charged_usd: 0.000016,
      usage: { prompt_tokens: 11, completion_tokens: 7, cost: 0.000016 },
    });
    expect((await rowOf(reply))?.costNano).toBe(16_000n);
  });

  test("a streamed answer cut during reasoning ends with length and is charged", async () => {
    const reply = await ask(pair, { answers: spentOnThoughts, manner: "streamed" });
    expect([reply.status, reply.thought, reply.said, reply.finish, reply.errors]).toEqual([
      200,
      "Hm.",
      "",
      "length",
      [],
    ]);
    expect([reply.endings, reply.breaches, reply.costUsd]).toEqual([1, [], 0.000016]);
  });

  test.each(manners)(
    "a filtered answer ends with content_filter and is charged: %s",
    async (manner) => {
      const reply = await ask(pair, { answers: filtered, manner });
      expect([reply.status, reply.said, reply.finish, reply.errors]).toEqual([
        200,
        "",
        "content_filter",
        [],
      ]);
      expect([reply.endings, reply.breaches, reply.costUsd]).toEqual([1, [], 0.000016]);
    },
  );
});

const noChoices = { id: "c1", object: "chat.completion", created: 7, model: "m", choices: [] };
const chatPairs = allPairs.filter(({ upstream }) => upstream === "openai-chat");

describe.each(chatPairs.map((pair) => [nameOf(pair), pair] as const))("%s", (_, pair) => {
  const failureOf = async (answer: Fields): Promise<unknown[]> => {
    const reply = await ask(pair, {
      answers: { ...nothing, "openai-chat": answer },
      manner: "whole",
    });
    const [error] = reply.errors;
    return [reply.status, error?.code, error?.metadata["upstream_message"], reply.breaches];
  };

  test("a completion without choices returns empty_stream", async () => {
    expect(await failureOf(noChoices)).toEqual([502, "empty_stream", undefined, []]);
  });

  test("a completion without choices returns the provider's error message if it has one", async () => {
    const error = { message: "The cache is full.", code: 503 };
    expect(await failureOf({ ...noChoices, error })).toEqual([
      502,
      "upstream_error",
      "The cache is full.",
      [],
    ]);
  });
});
