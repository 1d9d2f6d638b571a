import Anthropic from "@anthropic-ai/sdk";
import { betaTool } from "@anthropic-ai/sdk/helpers/beta/json-schema";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { provider, startGateway, testLlmKey, type TestGateway } from "../../support/gateway.ts";
import { json } from "../../support/upstream/steps.ts";
import {
  startScriptedUpstream,
  type ScriptedUpstream,
} from "../../support/scripted-upstream/scripted-upstream.ts";
import { type SeededStorage, seedStorage } from "../api/seed-storage.ts";
import { failureOf } from "./openai-client.ts";
import { modelIn, upstreamDialects } from "./support/client-stage.ts";
import { weatherTool } from "./support/client-under-test.ts";
import { bodyOf, startThreadHolder, type ThreadHolder } from "./support/thread-holder.ts";

let holder: ThreadHolder;
let scripted: ScriptedUpstream;
let gateway: TestGateway;
let storage: SeededStorage;
const held = "claude/held";
const free = "claude/held:free";
const strangersLlmKey = "sk-svc-v1-strangestrangestrangestrangestrange00";

beforeAll(async () => {
  holder = await startThreadHolder();
  scripted = await startScriptedUpstream();
  const entry = (id: string, dialect: string, baseUrl: string, more: object = {}) =>
    provider({ id, dialect, base_url: baseUrl, api_key: "upstream-secret", ...more });
  const model = (id: string) => ({
    id,
    context_length: 262_144,
    max_completion_tokens: 131_072,
    pricing: { prompt: "0.50", completion: "1.50" },
  });
  storage = await seedStorage({
    workspaces: [{ id: "ws_own" }, { id: "ws_strange" }],
    llmKeys: [{ secret: strangersLlmKey, workspaceId: "ws_strange" }],
  });
  gateway = await startGateway({
    ...storage.settings,
    providers: [
      entry("holder", "anthropic-messages", holder.baseUrl, {
        deviations: ["message_threads"],
        models: [model(held), { ...model(free), pricing: { prompt: "0", completion: "0" } }],
      }),
      ...upstreamDialects.map((dialect) =>
        entry(dialect, dialect, scripted.baseUrl, { models: [model(modelIn(dialect))] }),
      ),
    ],
  });
});
afterAll(async () => {
  await gateway.stop();
  storage.remove();
  holder.stop();
  scripted.stop();
});

const anthropic = (apiKey = testLlmKey): Anthropic =>
  new Anthropic({ apiKey, baseURL: gateway.origin, maxRetries: 0 });

const asks = { max_tokens: 1024, messages: [{ role: "user" as const, content: "Weather?" }] };
const call = { id: "toolu_1", name: "get_weather", arguments: { city: "Oslo" } };
const twoTurns = [{ calls: [call] }, { text: ["Sun in Oslo."] }];

const tool = betaTool({
  name: "get_weather",
  description: "Weather of a city.",
  inputSchema: weatherTool.parameters,
  run: () => "Sun.",
});

/** The conversation that the model is to see on the second turn, however it was sent. */
const wholeConversation = [
  { role: "user", content: "Weather?" },
  { role: "assistant", content: [{ type: "tool_use", id: "toolu_1", name: "get_weather" }] },
  { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_1" }] },
];

describe.each([false, true])("the tool runner (stream: %p)", (stream) => {
  const run = (model: string): Promise<Anthropic.Beta.BetaMessage> =>
    anthropic()
      .beta.messages.toolRunner({ ...asks, model, tools: [tool], stream })
      .runUntilDone();

  test("continues a conversation by the provider's own id", async () => {
    holder.say(...twoTurns);
    const message = await run(held);
    expect(message.content).toMatchObject([{ type: "text", text: "Sun in Oslo." }]);
    expect(holder.turns.at(-1)).toMatchObject(wholeConversation);
    const last = bodyOf(holder.requests.at(-1));
    expect(last["thread"]).toMatchObject({ type: "continue" });
    expect(last["messages"]).toHaveLength(1);
    expect(String(Object(last["thread"]).previous_message_id)).toStartWith("msg_native_");
  });

  test("sends all of it again when the provider has lost it", async () => {
    holder.say(...twoTurns);
    const client = anthropic();
    const runner = client.beta.messages.toolRunner({ ...asks, model: held, tools: [tool], stream });
    for await (const turn of runner) {
      if (stream) await (turn as { finalMessage(): Promise<unknown> }).finalMessage();
      if (holder.turns.length > 0) holder.lose();
    }
    expect(holder.turns.at(-1)).toMatchObject(wholeConversation);
    expect(bodyOf(holder.requests.at(-1))).toMatchObject({ thread: { type: "create" } });
  });

  test.each(upstreamDialects)("sends all of it to a provider of %s", async (dialect) => {
    scripted.forget();
    scripted.say(...twoTurns);
    const message = await run(modelIn(dialect));
    expect(message.content).toMatchObject([{ type: "text", text: "Sun in Oslo." }]);
    const sent = JSON.stringify(scripted.requests.at(-1)?.json());
    for (const said of ["Weather?", "get_weather", "Oslo", "Sun."]) expect(sent).toContain(said);
    expect(sent).not.toContain('"thread"');
  });
});

test.each(upstreamDialects)("a thread over %s is refused by its code", async (dialect) => {
  const thread = anthropic().beta.messages.thread({ ...asks, model: modelIn(dialect) });
  const failure = await failureOf(() => thread.send());
  expect(failure).toBeInstanceOf(Anthropic.BadRequestError);
  expect(failure).toMatchObject({
    errorCode: "thread_unsupported_request",
    details: { unsupported: ["model"] },
  });
});

test("a thread is refused where nothing may be kept", async () => {
  const params = { ...asks, model: held, provider: { zdr: true } };
  const failure = await failureOf(() => anthropic().beta.messages.thread(params).send());
  expect(failure).toMatchObject({ details: { unsupported: ["provider.zdr"] } });
});

test("an answer of another workspace is not continued, and its id never leaves", async () => {
  holder.say({ text: ["Mine."] });
  const first = anthropic().beta.messages.thread({ ...asks, model: free });
  const { id } = await first.send();
  const asked = holder.requests.length;
  const failure = await failureOf(() =>
    anthropic(strangersLlmKey).beta.messages.create({
      ...asks,
      model: free,
      betas: ["message-threads-2026-08-12"],
      thread: { type: "continue", previous_message_id: id },
    }),
  );
  expect(failure).toMatchObject({ status: 404, errorCode: "thread_not_found" });
  expect(holder.requests).toHaveLength(asked);
});

describe("previous_message_id of diagnostics", () => {
  const diagnosed = (previous: string) =>
    anthropic()
      .beta.messages.create({
        ...asks,
        model: held,
        diagnostics: { previous_message_id: previous },
      })
      .withResponse();

  test("is the provider's own id", async () => {
    const { id } = await anthropic().beta.messages.create({ ...asks, model: held });
    const { response } = await diagnosed(id);
    const { diagnostics } = bodyOf(holder.requests.at(-1));
    expect(Object(diagnostics).previous_message_id).toStartWith("msg_native_");
    expect(response.headers.get("x-service-translation-loss")).toBeNull();
  });

  test("is null and named as lost where the provider did not answer it", async () => {
    const { response } = await diagnosed("msg_native_1");
    expect(bodyOf(holder.requests.at(-1))["diagnostics"]).toEqual({ previous_message_id: null });
    expect(response.headers.get("x-service-translation-loss")).toContain(
      "diagnostics.previous_message_id",
    );
  });
});

test.each([false, true])("details of a native error are kept (stream: %p)", async (stream) => {
  const details = { error_code: "image_dimensions_too_large", paths: ["messages.0.content.1"] };
  const error = { type: "invalid_request_error", message: "Too large.", details };
  scripted.forget();
  scripted.enqueue(json({ type: "error", error }, { status: 400 }));
  const model = modelIn("anthropic-messages");
  const failure = await failureOf(() => anthropic().messages.create({ ...asks, model, stream }));
  expect(failure).toMatchObject({ status: 400, errorCode: details.error_code, details });
});

test("what the provider holds of a conversation counts towards the hold", async () => {
  const holdOf = async (thread: object): Promise<number> => {
    const { id } = await anthropic().beta.messages.create({
      ...asks,
      model: held,
      thread: thread as Anthropic.Beta.BetaThreadCreateParams,
    });
    const { data } = (await (await gateway.get(`/generation?id=${id}`)).json()) as {
      data: { hold: { reserved_usd: number } };
    };
    return data.hold.reserved_usd;
  };
  const { id: previous } = await anthropic().beta.messages.create({
    ...asks,
    model: held,
    thread: { type: "create" },
  });
  const alone = await holdOf({ type: "create", previous_message_id: previous });
  const continued = await holdOf({ type: "continue", previous_message_id: previous });
  // The answer took in 11 tokens and gave 7; a token of input costs 0.0000005 USD.
  expect(continued - alone).toBeCloseTo(18 * 0.5e-6, 6);
});
