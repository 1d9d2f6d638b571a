import { describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { testLlmKey } from "../../support/gateway.ts";
import { clientStage, modelIn, scriptedCost, upstreamDialects } from "./support/client-stage.ts";

const stage = clientStage();

const openai = (): OpenAI =>
  new OpenAI({ apiKey: testLlmKey, baseURL: `${stage.gateway.origin}/v1`, maxRetries: 0 });

const textEvents = [
  "response.created",
  "response.in_progress",
  "response.output_item.added",
  "response.content_part.added",
  "response.output_text.delta",
  "response.output_text.delta",
  "response.output_text.done",
  "response.content_part.done",
  "response.output_item.done",
  "response.completed",
];

const callEvents = [
  "response.created",
  "response.in_progress",
  "response.output_item.added",
  "response.function_call_arguments.delta",
  "response.function_call_arguments.done",
  "response.output_item.done",
  "response.completed",
];

/** Names of events, with those that repeat told once. */
const withoutRepeats = (names: readonly string[]): string[] =>
  names.filter((name, index) => name !== names[index - 1]);

describe.each(upstreamDialects)("over %s", (dialect) => {
  const model = modelIn(dialect);

  test("the events of a text come in order, numbered without gaps", async () => {
    stage.upstream.say({ text: ["Hel", "lo."] });
    const stream = await openai().responses.create({ model, input: "Hello", stream: true });
    const events = await Array.fromAsync(stream);
    expect(events.map((event) => event.sequence_number)).toEqual([...events.keys()]);
    expect(events.map((event) => String(event.type))).toEqual([
      ...textEvents,
      "response.service.metadata",
    ]);
    const [created] = events;
    const completed = events.at(-2);
    if (created?.type !== "response.created" || completed?.type !== "response.completed")
      throw new Error("the stream began or ended otherwise");
    expect(completed.response.id).toBe(created.response.id);
    expect(completed.response.usage).toMatchObject({ input_tokens: 11, cost: scriptedCost });
  });

  test("the events of a tool call come in order", async () => {
    const { upstream } = stage;
    upstream.say({ calls: [{ id: "call_1", name: "look_up", arguments: { word: "yes" } }] });
    const parameters = { type: "object", properties: { word: { type: "string" } } };
    const stream = await openai().responses.create({
      model,
      input: "Hello",
      stream: true,
      tools: [{ type: "function", name: "look_up", parameters, strict: false }],
    });
    const events = await Array.fromAsync(stream);
    const names = withoutRepeats(events.map((event) => String(event.type)));
    expect(names).toEqual([...callEvents, "response.service.metadata"]);
  });

  test("the strict helper gets no event that it would throw on", async () => {
    stage.upstream.say({ text: ["Hel", "lo."] });
    const names: string[] = [];
    const stream = openai().responses.stream({ model, input: "Hello" });
    stream.on("event", (event) => names.push(event.type));
    expect((await stream.finalResponse()).output_text).toBe("Hello.");
    expect(names).toEqual(textEvents);
  });

  test("a grammar tool returns a custom tool call, and its result is accepted", async () => {
    const { upstream } = stage;
    const patch = "*** Begin Patch";
    const tool: OpenAI.Responses.CustomTool = { type: "custom", name: "apply_patch" };
    const input: OpenAI.Responses.ResponseInput = [{ role: "user", content: "Patch it." }];
    const { responses } = openai();
    for (const stream of [false, true]) {
      upstream.say(
        { textCalls: [{ id: "call_1", name: "apply_patch", input: patch }] },
        { text: ["Done."] },
      );
      const request = { model, input, tools: [tool] };
      const first = await (stream
        ? responses.stream(request).finalResponse()
        : responses.create(request));
      const call = first.output[0];
      expect(call).toMatchObject({ type: "custom_tool_call", name: "apply_patch", input: patch });
      if (call?.type !== "custom_tool_call") throw new Error("no call came");
      const output = {
        type: "custom_tool_call_output" as const,
        call_id: call.call_id,
        output: "It is patched.",
      };
      const second = await responses.create({ ...request, input: [...input, call, output] });
      expect(second.output_text).toBe("Done.");
      expect(upstream.requests.at(-1)?.body).toContain("It is patched.");
    }
  });
});
