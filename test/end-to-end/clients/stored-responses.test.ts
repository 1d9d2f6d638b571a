import { describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { testLlmKey } from "../../support/gateway.ts";
import { wireOf } from "../../support/scripted-upstream/scripted-upstream.ts";
import { head, json, stall } from "../../support/upstream/steps.ts";
import { failureOf } from "./openai-client.ts";
import { clientStage, modelIn, scriptedCost, upstreamDialects } from "./support/client-stage.ts";

const stage = clientStage();

const openai = (): OpenAI =>
  new OpenAI({ apiKey: testLlmKey, baseURL: `${stage.gateway.origin}/v1`, maxRetries: 0 });

const call = { id: "call_oslo", name: "get_weather", arguments: { city: "Oslo" } };
const tools: OpenAI.Responses.FunctionTool[] = [
  {
    type: "function",
    name: "get_weather",
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
    strict: false,
  },
];

test("conversations.create() is told what to use instead", async () => {
  const failure = await failureOf(() => openai().conversations.create({}));
  expect(failure).toBeInstanceOf(OpenAI.NotFoundError);
  expect(String(failure)).toContain("previous_response_id");
  expect(String(failure)).not.toContain("management");
});

describe.each(upstreamDialects)("over %s", (dialect) => {
  const model = modelIn(dialect);

  test.each([false, true])(
    "a conversation continues from a response's id (stream: %p)",
    async (stream) => {
      const { responses } = openai();
      const create = (body: OpenAI.Responses.ResponseCreateParamsNonStreaming) =>
        stream
          ? responses.stream({ ...body, stream: true }).finalResponse()
          : responses.create(body);
      stage.upstream.say({ calls: [call] }, { text: ["Sun in Oslo."] }, { text: ["No umbrella."] });
      const asked = await create({
        model,
        input: "Weather in Oslo?",
        instructions: "Be brief.",
        tools,
      });
      const [made] = asked.output;
      if (made?.type !== "function_call") throw new Error("no call came");
      const told = await create({
        model,
        tools,
        previous_response_id: asked.id,
        input: [{ type: "function_call_output", call_id: made.call_id, output: "22 degrees" }],
      });
      expect(told).toMatchObject({ output_text: "Sun in Oslo.", previous_response_id: asked.id });
      const last = await create({
        model,
        tools,
        previous_response_id: told.id,
        input: "Umbrella?",
      });
      expect(last.output_text).toBe("No umbrella.");
      const body = stage.upstream.requests.at(-1)?.body;
      expect(body).toMatch(/Weather in Oslo\?.*22 degrees.*Sun in Oslo\..*Umbrella\?/s);
      // Instructions are not inherited (platform.openai.com/docs/api-reference/responses/create).
      expect(body).not.toContain("Be brief.");
    },
  );

  test("a response is retrieved as it was returned, with its input, until it is deleted", async () => {
    const { responses } = openai();
    stage.upstream.say({ text: ["Hel", "lo."] });
    const created = await responses.create({ model, input: "Say hello." });
    const { _request_id: _, ...retrieved } = await responses.retrieve(created.id);
    expect(created).toMatchObject(retrieved);
    expect(retrieved.usage).toMatchObject({
      input_tokens: 11,
      output_tokens: 7,
      cost: scriptedCost,
    });
    const items = await Array.fromAsync(responses.inputItems.list(created.id));
    expect(items).toMatchObject([{ type: "message", role: "user", id: expect.any(String) }]);
    await responses.delete(created.id);
    expect(await failureOf(() => responses.retrieve(created.id))).toBeInstanceOf(
      OpenAI.NotFoundError,
    );
  });

  test("a background response is queued, processed and retrieved", async () => {
    const { responses } = openai();
    stage.upstream.say({ text: ["In the ", "end."] });
    // No upstream of the stage repeats what it was asked.
    const asked = {
      instructions: "Be brief.",
      metadata: { topic: "patience" },
      tools: [{ type: "function", name: "wait", parameters: null, strict: null } as const],
    };
    const queued = await responses.create({
      model,
      input: "Take your time.",
      background: true,
      ...asked,
    });
    expect(queued).toMatchObject({ status: "queued", ...asked });
    const stream = await responses.retrieve(queued.id, { stream: true });
    const events = await Array.fromAsync(stream);
    expect(events.map((event) => event.sequence_number)).toEqual([...events.keys()]);
    expect(events.at(-2)?.type).toBe("response.completed");
    expect(await responses.retrieve(queued.id)).toMatchObject({
      status: "completed",
      background: true,
      output_text: "In the end.",
      usage: { cost: scriptedCost },
      ...asked,
    });
    const late = await responses.retrieve(queued.id, { stream: true, starting_after: 4 });
    const rest = await Array.fromAsync(late);
    expect(rest).toEqual(events.slice(5));
  });

  test("cancelling a background response aborts its provider request", async () => {
    const { responses } = openai();
    const { opening, content } = wireOf(dialect);
    const ordinal = stage.upstream.requests.length + 1;
    stage.upstream.enqueue([head(), ...opening, ...content, stall()]);
    const queued = await responses.create({ model, input: "Take your time.", background: true });
    const request = await stage.upstream.waitForRequest(ordinal);
    expect(await responses.cancel(queued.id)).toMatchObject({ id: queued.id, status: "cancelled" });
    await request.aborted;
    expect(await responses.retrieve(queued.id)).toMatchObject({ status: "cancelled" });
  });
});

test("the strict helper follows a background stream and resumes it", async () => {
  const { responses } = openai();
  stage.upstream.say({ text: ["Slow ", "and ", "steady."] });
  const queued = await responses.create({
    model: modelIn("anthropic-messages"),
    input: "Take your time.",
    background: true,
  });
  const stream = responses.stream({ response_id: queued.id, starting_after: 3 });
  const seen: number[] = [];
  stream.on("event", (event) => seen.push(event.sequence_number));
  expect((await stream.finalResponse()).output_text).toBe("Slow and steady.");
  expect(seen[0]).toBe(4);
});

test("a response that is not stored cannot be continued or retrieved", async () => {
  const { responses } = openai();
  const model = modelIn("openai-chat");
  stage.upstream.say({ text: ["Hello."] });
  const { id } = await responses.create({ model, input: "Hello", store: false });
  expect(await failureOf(() => responses.retrieve(id))).toBeInstanceOf(OpenAI.NotFoundError);
  const failure = await failureOf(() =>
    responses.create({ model, input: "And?", previous_response_id: id }),
  );
  expect(failure).toBeInstanceOf(OpenAI.NotFoundError);
  expect(failure).toMatchObject({
    code: "previous_response_not_found",
    param: "previous_response_id",
  });
});

test("a failed background response has the reason", async () => {
  const { responses } = openai();
  const model = modelIn("openai-chat");
  stage.upstream.enqueue(json(wireOf("openai-chat").errorBody(400), { status: 400 }));
  const { id } = await responses.create({ model, input: "Hello", background: true });
  await Array.fromAsync(await responses.retrieve(id, { stream: true }));
  const failed = await responses.retrieve(id);
  expect(failed.status).toBe("failed");
  expect(failed.error?.message).toContain("The fixture refused with 400.");
  // The helper takes nothing before it has heard of a response's beginning.
  const helped = await responses.stream({ response_id: id }).finalResponse();
  expect(helped).toMatchObject({ id, status: "failed", error: failed.error });
});
