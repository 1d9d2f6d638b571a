import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { chatRequest } from "../../../../test/support/canonical-arbitraries.ts";
import { GatewayError } from "../../../platform/kernel/errors.ts";
import type { JsonObject } from "../../canonical/json.ts";
import type { Message } from "../../canonical/message.ts";
import { asObject } from "../shared/wire-fields.ts";
import { encodeRequest } from "./encode-request.ts";

interface Content {
  role: string;
  parts: JsonObject[];
}

/**
 * Conversations in any disorder: calls without results, results without calls, ids twice, nothing
 * said.
 */
const disorder: fc.Arbitrary<Message[]> = fc.array(
  fc.oneof(
    fc.constantFrom<Message>(
      { role: "user", parts: [] },
      { role: "user", parts: [{ type: "text", text: "" }] },
      { role: "user", parts: [{ type: "text", text: "u" }] },
      { role: "system", parts: [] },
      { role: "system", parts: [{ type: "text", text: "s" }] },
      { role: "assistant", parts: [] },
      {
        role: "assistant",
        parts: [{ type: "reasoning", signature: "x", provenance: { providerId: "google" } }],
      },
      {
        role: "assistant",
        parts: [
          { type: "refusal", refusal: "" },
          { type: "text", text: "" },
        ],
      },
    ),
    fc.array(fc.constantFrom("a", "b", "c"), { minLength: 1, maxLength: 3 }).map(
      (ids): Message => ({
        role: "assistant",
        parts: ids.map((id) => ({
          type: "tool-call",
          kind: "function",
          id,
          name: id,
          arguments: "",
        })),
      }),
    ),
    fc
      .constantFrom("a", "b", "z")
      .map((toolCallId): Message => ({ role: "tool", toolCallId, parts: [] })),
  ),
  { maxLength: 12 },
);

/** The contents of a request; none where it says nothing at all, which is refused. */
function contentsOf(messages: readonly Message[], upstreamModel: string): Content[] {
  try {
    const { body } = encodeRequest(
      { dialect: "openai-chat", model: "m", stream: false, messages },
      { upstreamModel, stream: false, providerId: "google" },
    );
    return JSON.parse(JSON.stringify(body.contents)) as Content[];
  } catch (error) {
    if (error instanceof GatewayError && error.code === "unsupported_content") return [];
    throw error;
  }
}

const namesIn = (parts: readonly JsonObject[], key: string): unknown[] =>
  parts.filter((part) => key in part).map((part) => asObject(part[key])?.name);

function checkContents(contents: readonly Content[]): void {
  contents.forEach(({ role, parts }, index) => {
    expect(contents[index + 1]?.role).not.toBe(role);
    expect(parts.length).toBeGreaterThan(0);
    for (const part of parts) {
      expect(part.text).not.toBe("");
      expect(
        Object.keys(part).filter((key) => key !== "thoughtSignature" && key !== "thought"),
      ).toHaveLength(1);
    }
    expect(namesIn(contents[index + 1]?.parts ?? [], "functionResponse")).toEqual(
      namesIn(parts, "functionCall"),
    );
    if (index === 0) expect(parts.some((part) => "functionResponse" in part)).toBe(false);
  });
}

describe("contents alternate, are not empty and answer every call", () => {
  test.each(["gemini-3-pro", "gemini-2.5-flash"])("for any messages, with %s", (model) => {
    fc.assert(
      fc.property(disorder, (messages) => checkContents(contentsOf(messages, model))),
      { numRuns: 1_000 },
    );
  });

  test("for conversations of chat clients", () => {
    fc.assert(
      fc.property(chatRequest, (request) =>
        checkContents(contentsOf(request.messages, "gemini-3-pro")),
      ),
      { numRuns: 300 },
    );
  });
});

test("earlier turns keep their bytes when the conversation continues", () => {
  fc.assert(
    fc.property(disorder, (messages) => {
      const before = JSON.stringify(contentsOf(messages, "gemini-3-pro").slice(0, -1)).slice(0, -1);
      const after = JSON.stringify(
        contentsOf(
          [...messages, { role: "user", parts: [{ type: "text", text: "more" }] }],
          "gemini-3-pro",
        ),
      );
      if (before !== "[") expect(after.startsWith(before)).toBe(true);
    }),
    { numRuns: 300 },
  );
});
