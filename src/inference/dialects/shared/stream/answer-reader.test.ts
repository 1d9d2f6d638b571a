import { describe, expect, test } from "bun:test";
import { adaptIn, routeIn } from "../../../../../test/support/in-process.ts";
import type { Adapter } from "../../../pipeline/inference-call.ts";
import type { MeteredUsage } from "../../../canonical/response.ts";

type Fields = Record<string, unknown>;

const asked = { model: "acme/large", messages: [{ role: "user", content: "Hi" }] };
const route = routeIn("openai-chat");
const adapterOf = (client: "openai-chat" | "anthropic-messages", stream: boolean): Adapter =>
  adaptIn(client, {
    body: { ...asked, stream, ...(client === "anthropic-messages" && { max_tokens: 100 }) },
    route,
  });

/** What is charged of a stream without usage that a chat upstream sent. */
async function streamed(adapter: Adapter, deltas: readonly Fields[]): Promise<MeteredUsage> {
  const relay = adapter.createRelay({
    shown: { id: "shown", model: "acme/large" },
    inputTokens: 5,
    windowTokens: 1_000,
    fallback: undefined,
    settle: () => Promise.resolve({ chargedNano: 1n }),
    metadataText: () => "{}",
  });
  const chunk = (delta: Fields, finish: string | null = null): string =>
    JSON.stringify({ id: "up", choices: [{ index: 0, delta, finish_reason: finish }] });
  for (const data of [...deltas.map((delta) => chunk(delta)), chunk({}, "stop"), "[DONE]"])
    await relay.accept({ data });
  expect(relay.hasContent).toBe(true);
  return relay.metered();
}

const thought = (text: string): Fields => ({
  reasoning_details: [{ type: "reasoning.text", text, index: 0 }],
});
const call = (said: Fields): Fields => ({
  tool_calls: [{ index: 0, id: "call_1", type: "function", function: said }],
});
const picture = { images: [{ image_url: { url: "data:image/png;base64,AAAA" } }] };

/** Deltas of a stream, and the same as one message. */
const answers: readonly [what: string, deltas: readonly Fields[], message: Fields][] = [
  ["text", [{ content: "Once upon" }, { content: " a time" }], { content: "Once upon a time" }],
  ["reasoning_content", [{ reasoning_content: "Well, then" }], { reasoning_content: "Well, then" }],
  [
    "reasoning_details alone",
    [thought("Once upon"), thought(" a time there was")],
    thought("Once upon a time there was"),
  ],
  [
    "reasoning in two fields",
    [{ reasoning: "Well, then", ...thought("Well, then") }],
    { reasoning: "Well, then", ...thought("Well, then") },
  ],
  [
    "thinking within the content",
    [{ content: [{ type: "thinking", thinking: [{ type: "text", text: "Well, then" }] }] }],
    { content: [{ type: "thinking", thinking: [{ type: "text", text: "Well, then" }] }] },
  ],
  [
    "calls in pieces",
    [
      call({ name: "look_up", arguments: "" }),
      call({ arguments: '{"a":' }),
      call({ arguments: "1}" }),
    ],
    call({ name: "look_up", arguments: '{"a":1}' }),
  ],
  ["pictures alone", [picture], { content: "", ...picture }],
];

describe("passthrough and translation estimate alike:", () => {
  test.each(answers)("%s, streamed", async (_, deltas) => {
    const kept = await streamed(adapterOf("openai-chat", true), deltas);
    expect(kept).toEqual(await streamed(adapterOf("anthropic-messages", true), deltas));
    expect(kept.usage.outputTokens).toBeGreaterThan(0);
  });

  test.each(answers)("%s, whole", (_, _deltas, message) => {
    const body = {
      id: "up",
      object: "chat.completion",
      choices: [{ index: 0, message: { role: "assistant", ...message }, finish_reason: "stop" }],
    };
    const read = (adapter: Adapter): unknown => {
      const { outputCharacters, hasContent, spentOnReasoning } =
        adapter.readWhole(JSON.stringify(body), body) ?? {};
      return { outputCharacters, hasContent, spentOnReasoning };
    };
    const kept = read(adapterOf("openai-chat", false));
    expect(kept).toEqual(read(adapterOf("anthropic-messages", false)));
    expect(kept).toMatchObject({ hasContent: true });
  });
});
