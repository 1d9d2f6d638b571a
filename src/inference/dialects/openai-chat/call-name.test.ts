import { describe, expect, test } from "bun:test";
import { adaptIn, readIn, relayIn, routeIn } from "../../../../test/support/in-process.ts";
import type { DialectId } from "../../canonical/dialect-id.ts";
import { ResponseAssembler } from "../../canonical/response-assembler.ts";
import type { CanonicalResponse } from "../../canonical/response.ts";
import { SseDecoder } from "../../upstream/sse-decoder.ts";
import { upstreamDialects } from "../index.ts";

const route = routeIn("openai-chat");

const parameters = { type: "object", properties: {} };
const requests = {
  "openai-chat": (names: readonly string[]) => ({
    messages: [{ role: "user", content: "Hi" }],
    tools: names.map((name) => ({ type: "function", function: { name, parameters } })),
  }),
  "anthropic-messages": (names: readonly string[]) => ({
    max_tokens: 100,
    messages: [{ role: "user", content: "Hi" }],
    tools: names.map((name) => ({ name, input_schema: parameters })),
  }),
  "openai-responses": (names: readonly string[]) => ({
    input: "Hi",
    tools: names.map((name) => ({ type: "function", name, parameters })),
  }),
} as const;
const clients = Object.keys(requests) as (keyof typeof requests)[];

/** A piece of a call: its name, its arguments, and its index or other members. */
type Piece = [name: string | undefined, text?: string | undefined, more?: Record<string, unknown>];

const chunkOf = (delta: object, finish: string | null = null): string =>
  `data: ${JSON.stringify({
    id: "up-1",
    object: "chat.completion.chunk",
    created: 1,
    model: "large-v2",
    choices: [{ index: 0, delta, finish_reason: finish }],
  })}\n\n`;

const pieceOf = ([name, text, more]: Piece): object => ({
  index: 0,
  ...more,
  function: {
    ...(name !== undefined && { name }),
    ...(text !== undefined && { arguments: text }),
  },
});

const first = { id: "call_1", type: "function" };

const streamOf = (pieces: readonly Piece[], ends: readonly string[]): string =>
  [
    chunkOf({ role: "assistant", content: null }),
    ...pieces.map((piece) => chunkOf({ tool_calls: [pieceOf(piece)] })),
    ...ends,
  ].join("");

const finished = [chunkOf({}, "tool_calls"), "data: [DONE]\n\n"];

function answerOf(dialect: DialectId, text: string): CanonicalResponse {
  const decoder = upstreamDialects[dialect].createStreamDecoder();
  const assembler = new ResponseAssembler();
  const events = new SseDecoder().push(Buffer.from(text));
  for (const part of [...events.flatMap((event) => decoder.decode(event)), ...decoder.end()])
    assembler.add(part);
  expect(assembler.error).toBeUndefined();
  return assembler.response();
}

const callsOf = ({ choices: [choice] }: CanonicalResponse): [name: string, text: string][] =>
  (choice?.parts ?? []).flatMap((part) =>
    part.type === "tool-call" ? [[part.name, part.arguments]] : [],
  );

async function relayed(
  client: keyof typeof requests,
  { stream, declared }: { stream: string; declared: readonly string[] },
): Promise<string> {
  const body = { model: "acme/large", stream: true, ...requests[client](declared) };
  const { text, refused } = await relayIn(adaptIn(client, { body, route }), [Buffer.from(stream)]);
  expect(refused).toBeUndefined();
  return text;
}

/** Returns the calls that a stream's client is given in whole where it did not ask for a stream. */
async function gathered(
  client: keyof typeof requests,
  { stream, declared }: { stream: string; declared: readonly string[] },
): Promise<[name: string, text: string][]> {
  const body = { model: "acme/large", ...requests[client](declared) };
  const answer = await readIn(adaptIn(client, { body, route }), stream);
  if (!answer.ok) throw new Error("the answer could not be read");
  return callsOf(upstreamDialects[client].decodeResponse(JSON.parse(answer.text)));
}

interface ChatDelta {
  tool_calls?: { index: number; id?: string; function?: { name?: string } }[];
}

const deltasOf = (text: string): ChatDelta[] =>
  new SseDecoder()
    .push(Buffer.from(text))
    .flatMap(({ data }) =>
      data === "[DONE]"
        ? []
        : (JSON.parse(data) as { choices: { delta: ChatDelta }[] }).choices.map(
            ({ delta }) => delta,
          ),
    );

const weather: [string, string][] = [["get_weather", '{"a":1}']];

const cases: [how: string, pieces: Piece[], calls: [string, string][]][] = [
  [
    "whole in the first piece",
    [
      ["get_weather", "", first],
      [undefined, '{"a":'],
      [undefined, "1}"],
    ],
    weather,
  ],
  [
    "in two parts",
    [
      ["get_", "", first],
      ["weather", ""],
      [undefined, '{"a":'],
      [undefined, "1}"],
    ],
    weather,
  ],
  [
    "in three parts, the arguments with the last",
    [["ge", undefined, first], ["t_"], ["weather", '{"a":'], [undefined, "1}"]],
    weather,
  ],
  [
    "in parts, with id and type in each",
    [
      ["get_", "", first],
      ["weather", "", first],
      ["", '{"a":', first],
      ["", "1}", first],
    ],
    weather,
  ],
  [
    "whole in every piece, with id and type",
    [
      ["get_weather", "", first],
      ["get_weather", '{"a":', first],
      ["get_weather", "1}", first],
    ],
    weather,
  ],
  [
    "as far as it has come in every piece",
    [
      ["get_", "", first],
      ["get_weather", "", first],
      ["get_weather", '{"a":', first],
      ["get_weather", "1}", first],
    ],
    weather,
  ],
  [
    "after a piece without one",
    [
      [undefined, "", first],
      ["get_weather", ""],
      [undefined, '{"a":1}'],
    ],
    weather,
  ],
  [
    "in parts without id or index",
    [
      ["get_", "", { index: undefined }],
      ["weather", "", { index: undefined }],
      [undefined, '{"a":1}', { index: undefined }],
    ],
    weather,
  ],
  [
    "in parts that alternate with those of another call",
    [
      ["get_", "", first],
      ["get_", "", { ...first, index: 1, id: "call_2" }],
      ["weather", ""],
      ["time", "", { index: 1 }],
      [undefined, '{"a":1}'],
      [undefined, '{"b":2}', { index: 1 }],
    ],
    [...weather, ["get_time", '{"b":2}']],
  ],
  [
    "whole with all arguments, without id or index, twice",
    [
      ["get_weather", '{"a":1}', { index: undefined }],
      ["get_time", '{"b":2}', { index: undefined }],
    ],
    [...weather, ["get_time", '{"b":2}']],
  ],
  ["in parts, and without arguments", [["get_", "", first], ["weather"]], [["get_weather", "{}"]]],
];

const longer = ["get_weather", "get_time", "get_weather_of_a_week"];
const offers: [what: string, declared: string[]][] = [
  ["declared", ["get_weather", "get_time"]],
  ["declared beside one that it begins", longer],
];

describe.each(clients)("%s of a chat provider that sends a tool's name", (client) => {
  describe.each(offers)("that is %s", (_, declared) => {
    test.each(cases)("%s", async (_how, pieces, calls) => {
      const stream = streamOf(pieces, finished);
      const text = await relayed(client, { stream, declared });
      const answer = answerOf(client, text);
      const read = callsOf(answer).map(([name, json]): [string, string] => [name, json || "{}"]);
      // A chat client puts the calls of a stream in order by their index.
      const came = client === "openai-chat" ? [calls, calls.toReversed()] : [calls];
      expect(came).toContainEqual(read);
      expect(answer.choices[0]?.finish.reason).toBe("tool_calls");
      expect(await gathered(client, { stream, declared })).toEqual(calls);
    });
  });

  test.each([[["data: [DONE]\n\n"]], [[chunkOf({}, "length"), "data: [DONE]\n\n"]]])(
    "and ends before anything follows it: %p",
    async (ends) => {
      const stream = streamOf([["get_", "", first], ["weather"]], ends);
      const text = await relayed(client, { stream, declared: longer });
      expect(callsOf(answerOf(client, text)).map(([name]) => name)).toEqual(["get_weather"]);
    },
  );
});

// OpenAI's client for JavaScript keeps the last part of a name, the AI SDK the first; OpenAI's for
// Python and LangChain join the parts of name and id.
test.each(cases)("a chat client is sent each name and id once: %s", async (_, pieces, calls) => {
  const text = await relayed("openai-chat", {
    stream: streamOf(pieces, finished),
    declared: longer,
  });
  const sent = deltasOf(text).flatMap((delta) => delta.tool_calls ?? []);
  for (const [position, [name]] of calls.entries()) {
    const ofCall = sent.filter(({ index }) => index === position);
    expect(ofCall[0]?.function?.name).toBe(name);
    expect(ofCall.filter((piece) => piece.function?.name)).toHaveLength(1);
    expect(ofCall.filter((piece) => piece.id !== undefined)).toHaveLength(1);
  }
});

test.each([
  ["whole", ["get_weather", undefined]],
  ["in parts that no tool's name begins with", ["look", "up"]],
])("a chat client is sent a name at once, as it came: %s", async (_, [one, two]) => {
  const pieces: Piece[] = [
    [one, "", first],
    [two, "{}"],
  ];
  const text = await relayed("openai-chat", {
    stream: streamOf(pieces, finished),
    declared: ["get_weather"],
  });
  expect(deltasOf(text).flatMap((delta): object[] => delta.tool_calls ?? [])).toEqual(
    pieces.map(pieceOf),
  );
});

test("the older field of functions is held back in the same way", async () => {
  const pieces = [
    { name: "get_" },
    { name: "weather" },
    { arguments: '{"a":' },
    { arguments: "1}" },
  ];
  const stream = [
    ...pieces.map((piece) => chunkOf({ role: "assistant", function_call: piece })),
    chunkOf({}, "function_call"),
    "data: [DONE]\n\n",
  ].join("");
  const deltas = deltasOf(await relayed("openai-chat", { stream, declared: longer }));
  const sent = deltas.flatMap((delta) => ("function_call" in delta ? [delta.function_call] : []));
  expect(sent).toEqual([{ name: "get_weather", arguments: '{"a":' }, { arguments: "1}" }]);
});
