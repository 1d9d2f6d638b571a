import { describe, expect, test } from "bun:test";
import type { JsonObject } from "../canonical/json.ts";
import { clientDialects, upstreamDialects } from "./index.ts";

/** An object with one property; another one is optional if it is named. */
const object = (optional: JsonObject = {}): JsonObject => ({
  type: "object",
  properties: { city: { type: "string" }, ...optional },
  required: ["city"],
  additionalProperties: false,
});
const optional = object({ unit: { type: "string" } });
const { additionalProperties: _, ...open } = object();

const schemas: [name: string, schema: JsonObject, strict: boolean][] = [
  ["everything required", object(), true],
  ["an optional property", optional, false],
  ["an optional property of an element", { type: "array", items: optional }, false],
  ["an optional property of an alternative", { anyOf: [object(), optional] }, false],
  ["an optional property of a definition", { ...object(), $defs: { place: optional } }, false],
  ["room for other properties", open, false],
  ["room for others in a definition", { ...object(), $defs: { place: open } }, false],
];

const upstreams = ["openai-chat", "openai-responses"] as const;

/** Returns what an OpenAI provider gets of a request, and the fields that are named as lost. */
function sent(
  body: JsonObject,
  {
    client,
    upstream,
  }: { client: keyof typeof clientDialects; upstream: (typeof upstreams)[number] },
): { body: string; losses: string[] } {
  const request = clientDialects[client]?.decodeRequest({ model: "m", ...body });
  if (request === undefined) throw new Error(`clients do not speak ${client}`);
  const encoded = upstreamDialects[upstream].encodeRequest(request, {
    upstreamModel: "m",
    stream: false,
    providerId: "acme",
  });
  return {
    body: JSON.stringify(encoded.body),
    losses: encoded.losses.map(({ field }) => field),
  };
}

// OpenAI answers 400 to a strict schema with optional properties or room for others; Anthropic not.
describe.each(upstreams)(
  "what a Messages client sends to %s is strict only where that works",
  (upstream) => {
    const client = "anthropic-messages";
    const messages = [{ role: "user", content: "Where?" }];

    test.each(schemas)("as a format: %s", (_, schema, strict) => {
      const format = { type: "json_schema", schema };
      const { body, losses } = sent(
        { max_tokens: 99, messages, output_config: { format } },
        { client, upstream },
      );
      expect(body).toContain(`"strict":${strict}`);
      expect(losses).toEqual(strict ? [] : ["response_format.strict"]);
    });

    test.each(schemas.filter(([, { type }]) => type === "object"))(
      "as a tool: %s",
      (_, schema, strict) => {
        const tools = [{ name: "f", input_schema: schema, strict: true }];
        const { body, losses } = sent({ max_tokens: 99, messages, tools }, { client, upstream });
        expect(body).toContain(`"strict":${strict}`);
        expect(losses).toEqual(strict ? [] : ["tools[0].strict"]);
      },
    );
  },
);

test("what another OpenAI client calls strict stays strict", () => {
  const format = {
    type: "json_schema",
    json_schema: { name: "n", schema: optional, strict: true },
  };
  const { body, losses } = sent(
    { messages: [{ role: "user", content: "Where?" }], response_format: format },
    { client: "openai-chat", upstream: "openai-responses" },
  );
  expect(body).toContain('"strict":true');
  expect(losses).toEqual([]);
});
