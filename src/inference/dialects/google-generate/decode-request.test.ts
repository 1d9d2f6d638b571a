import { describe, expect, test } from "bun:test";
import type { JsonObject } from "../../canonical/json.ts";
import type { CanonicalRequest } from "../../canonical/request.ts";
import { carrySeals } from "./contents/seals.ts";
import { decodeRequest } from "./decode-request.ts";

const decoded = (fields: JsonObject): CanonicalRequest =>
  decodeRequest({ model: "acme/large", contents: "Hi", ...fields });

const user = (...parts: JsonObject[]): JsonObject => ({ role: "user", parts });
const model = (...parts: JsonObject[]): JsonObject => ({ role: "model", parts });
const call = (name: string, more: JsonObject = {}): JsonObject => ({
  functionCall: { name, args: { q: 1 }, ...more },
});
const result = (name: string, output: string, id?: string): JsonObject => ({
  functionResponse: { name, response: { output }, ...(id !== undefined && { id }) },
});

const turnsOf = (...contents: JsonObject[]): CanonicalRequest["messages"] =>
  decoded({ contents }).messages;

describe("the contents of a turn that was streamed", () => {
  test("are one turn: pieces of text are joined, white space included", () => {
    const pieces = ["It", " ", "is\n", "\n", "so."].map((text) => model({ text }));
    expect(turnsOf(user({ text: "Hi" }), ...pieces, user({ text: "And?" }))).toEqual([
      { role: "user", parts: [{ type: "text", text: "Hi" }] },
      { role: "assistant", parts: [{ type: "text", text: "It is\n\nso." }] },
      { role: "user", parts: [{ type: "text", text: "And?" }] },
    ]);
  });

  test("have their thoughts once, where a signature carries them", () => {
    const thoughts = [
      {
        type: "reasoning" as const,
        text: "Hm. Yes.",
        signature: "s",
        provenance: { providerId: "acme" },
      },
    ];
    const signed = { ...call("look", { id: "c1" }), thoughtSignature: carrySeals({ thoughts }) };
    const shown = [{ text: "Hm. " }, { text: "Yes." }].map((part) =>
      model({ ...part, thought: true }),
    );
    const turns = turnsOf(user({ text: "Hi" }), ...shown, model(signed), model(call("look")));
    expect(turns[1]?.parts).toMatchObject([
      ...thoughts,
      { type: "tool-call", id: "c1", name: "look" },
      { type: "tool-call", id: expect.stringMatching(/^call_/), name: "look" },
    ]);
  });

  test("end with what the user says: a later turn is another one", () => {
    const turns = turnsOf(
      user({ text: "Hi" }),
      model({ text: "One." }),
      user({ text: "And?" }),
      model({ text: "Two." }),
    );
    expect(turns.map(({ role }) => role)).toEqual(["user", "assistant", "user", "assistant"]);
  });
});

describe("results of calls", () => {
  test("without ids belong to the calls of their name, in order", () => {
    const turns = turnsOf(
      user({ text: "Hi" }),
      model(call("a"), call("b"), call("a")),
      user(result("b", "of b"), result("a", "first of a"), result("a", "second of a")),
    );
    const ids = turns[1]?.parts.map((part) => (part.type === "tool-call" ? part.id : ""));
    expect(new Set(ids).size).toBe(3);
    expect(turns.slice(2)).toMatchObject([
      { role: "tool", toolCallId: ids?.[1], parts: [{ text: "of b" }] },
      { role: "tool", toolCallId: ids?.[0], parts: [{ text: "first of a" }] },
      { role: "tool", toolCallId: ids?.[2], parts: [{ text: "second of a" }] },
    ]);
  });

  test("keep their ids, say that they failed, and stand before what the user says with them", () => {
    const turns = turnsOf(
      user({ text: "Hi" }),
      model(call("a", { id: "c1" })),
      user(
        { text: "Look:" },
        { functionResponse: { id: "c1", name: "a", response: { error: "No." } } },
      ),
    );
    expect(turns.slice(2)).toMatchObject([
      { role: "tool", toolCallId: "c1", isError: true, parts: [{ text: "No." }] },
      { role: "user", parts: [{ text: "Look:" }] },
    ]);
  });
});

test("a request is read in the forms that clients write", () => {
  const said = [{ role: "user", parts: [{ type: "text", text: "Hi" }] }];
  for (const contents of ["Hi", { parts: [{ text: "Hi" }] }, [{ parts: { text: "Hi" } }]])
    expect(decoded({ contents: contents as JsonObject }).messages).toEqual(said as never);
  for (const systemInstruction of ["Be brief.", { parts: [{ text: "Be brief." }] }])
    expect(decoded({ systemInstruction }).messages).toContainEqual({
      role: "system",
      parts: [{ type: "text", text: "Be brief." }],
    } as never);
});

describe("reasoning", () => {
  test.each([
    [{ thinkingBudget: 0 }, { enabled: false }],
    [{ thinkingBudget: -1 }, { enabled: true }],
    [{ thinkingBudget: 2_048 }, { budgetTokens: 2_048 }],
    [{ thinkingLevel: "HIGH" }, { effort: "high" }],
    [{ thinkingLevel: "THINKING_LEVEL_UNSPECIFIED" }, undefined],
    [{ includeThoughts: true }, { enabled: true, display: "summarized", exclude: false }],
    [{ includeThoughts: false }, undefined],
  ])("of %o is %o", (thinkingConfig, reasoning) => {
    expect(decoded({ generationConfig: { thinkingConfig } }).reasoning).toEqual(reasoning as never);
  });
});
