import { afterAll, beforeAll, expect, test } from "bun:test";
import { wireOf } from "../../support/scripted-upstream/scripted-upstream.ts";
import { json } from "../../support/upstream/steps.ts";
import type { ClientDialect } from "./support/client-dialect.ts";
import { model, providerId, startMatrix, type MatrixScene } from "./support/matrix-scene.ts";
import { nameOf, pairs, upstreams, type Pair } from "./support/pairs.ts";
import { readReply, type Reply } from "./support/reply.ts";

let scene: MatrixScene;
beforeAll(async () => {
  scene = await startMatrix();
  for (const dialect of upstreams) scene.upstreams[dialect].script(json(wireOf(dialect).whole));
});
afterAll(() => scene.end());

const nest = (open: string, close: string, levels: number): string =>
  `${open.repeat(levels)}${close.repeat(levels)}`;

/**
 * Deep JSON in every shape that fits into a text which is not looked at, and one beyond what may be
 * sent.
 */
const shapes: readonly (readonly [shape: string, text: string])[] = [
  ["lists, 7,000 deep", nest("[", "]", 7_000)],
  ["objects, 2,300 deep", `${'{"a":'.repeat(2_300)}1${"}".repeat(2_300)}`],
  ["a schema, 600 deep", `${'{"properties":{"a":'.repeat(600)}{}${"}}".repeat(600)}`],
  ["a list schema, 900 deep", `${'{"items":'.repeat(900)}{}${"}".repeat(900)}`],
  ["objects, 100,000 deep", `${'{"a":'.repeat(100_000)}1${"}".repeat(100_000)}`],
];

/** Where a client may put JSON of any depth; `DEEP` marks the place. */
function bodiesOf(client: ClientDialect): Readonly<Record<string, unknown>> {
  const plain = { model, ...client.ask("Hello") };
  const call = { type: "tool_use", id: "t", name: "f", input: "DEEP" };
  const asked = { role: "user", content: "Hello" };
  const result = { type: "tool_result", tool_use_id: "t", content: "DEEP" };
  const type = client.name === "openai-responses" ? { type: "function" } : {};
  return {
    metadata: { ...plain, metadata: "DEEP" },
    "an unknown field": { ...plain, x_unknown: "DEEP" },
    trace: { ...plain, trace: "DEEP" },
    "the schema of an answer": {
      ...plain,
      response_format: { type: "json_schema", json_schema: { name: "a", schema: "DEEP" } },
      text: { format: { type: "json_schema", name: "a", schema: "DEEP" } },
    },
    "the schema of a tool":
      client.name === "openai-chat"
        ? { ...plain, tools: [{ type: "function", function: { name: "f", parameters: "DEEP" } }] }
        : { ...plain, tools: [{ ...type, name: "f", parameters: "DEEP", input_schema: "DEEP" }] },
    "the content of a message": {
      ...plain,
      messages: [{ role: "user", content: "DEEP" }],
      input: [{ role: "user", content: "DEEP" }],
    },
    "the arguments of a call": {
      ...plain,
      messages: [
        asked,
        { role: "assistant", content: [call] },
        { role: "user", content: [result] },
      ],
      input: [{ type: "function_call", call_id: "t", name: "f", arguments: "DEEP" }],
    },
  };
}

/** Sends it to one provider only. */
const send = async ({ client, upstream }: Pair, body: unknown, deep: string): Promise<Reply> => {
  const routed = { ...(body as object), provider: { only: [providerId(upstream)] } };
  return readReply(
    client,
    await scene.gateway.post(client.path, JSON.stringify(routed).replaceAll('"DEEP"', deep)),
  );
};

const named = pairs.map((pair) => [nameOf(pair), pair] as const);

test.each(named)(
  "%s: JSON of any depth is accepted or returns 400",
  async (_, pair) => {
    const answers: Record<string, number> = {};
    for (const [place, body] of Object.entries(bodiesOf(pair.client))) {
      for (const [shape, text] of shapes) {
        const { status } = await send(pair, body, text);
        if (status !== 200 && status !== 400) answers[`${place}: ${shape}`] = status;
      }
    }
    expect(answers).toEqual({});
  },
  240_000,
);

test.each(named)(
  "%s: JSON that is nested too deeply to serialise returns 400 before it costs anything",
  async (_, pair) => {
    const body = { model, ...pair.client.ask("Hello"), x_unknown: "DEEP" };
    const { status, errors } = await send(pair, body, nest("[", "]", 100_000));
    expect([status, errors[0]?.message]).toEqual([
      400,
      "The body's JSON is nested more than 1000 levels deep. Send it flatter.",
    ]);
  },
);
