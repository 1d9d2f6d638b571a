import OpenAI from "openai";
import { expect, test } from "bun:test";
import { readCassettes } from "../../../../../test/support/cassettes.ts";
import { adaptIn, relayIn, routeIn } from "../../../../../test/support/in-process.ts";

const body = { model: "acme/large", stream: true, input: "Hi" };
const adapter = adaptIn("openai-responses", { body, route: routeIn("openai-responses") });

const framesIn = (text: string): string[] => text.split("\n\n").filter((frame) => frame !== "");
const nameOf = (frame: string): string => /^event: (\S+)/m.exec(frame)?.[1] ?? "";

const cassettes = new Map(
  readCassettes("openai-responses").map(({ name, bytes }) => [
    name,
    framesIn(Buffer.from(bytes).toString()),
  ]),
);

const startNames: ReadonlySet<string> = new Set([
  "response.created",
  "response.in_progress",
  "response.output_item.added",
  "response.content_part.added",
  "response.reasoning_summary_part.added",
]);

async function relayed(frames: readonly string[]): Promise<string> {
  const { text, refused } = await relayIn(adapter, [Buffer.from(`${frames.join("\n\n")}\n\n`)]);
  expect(refused).toBeUndefined();
  return text;
}

/** Reads a stream with OpenAI's own client, which throws where a start is missing. */
async function readByClient(text: string): Promise<OpenAI.Responses.Response> {
  const client = new OpenAI({
    apiKey: "k",
    maxRetries: 0,
    fetch: () =>
      Promise.resolve(
        // Like the gateway, which leaves out its own event towards this client.
        new Response(
          framesIn(text)
            .filter((frame) => nameOf(frame) !== "response.service.metadata")
            .map((frame) => `${frame}\n\n`)
            .join(""),
          { headers: { "content-type": "text/event-stream" } },
        ),
      ),
  });
  return client.responses.stream({ model: "acme/large", input: "Hi" }).finalResponse();
}

const textStreams = [
  "plain-text",
  "reasoning-then-text",
  "reasoning-text",
  "refusal",
  "two-messages",
];

test.each(textStreams)(
  "%s is the same with and without the starts of its provider",
  async (name) => {
    const frames = cassettes.get(name) ?? [];
    const bare = frames.filter((frame) => !startNames.has(nameOf(frame)));
    expect(bare.length).toBeLessThan(frames.length);
    const [whole, repaired] = [await relayed(frames), await relayed(bare)];
    expect(framesIn(repaired).map(nameOf)).toEqual(framesIn(whole).map(nameOf));
    const numbers = framesIn(repaired).map(
      (frame) =>
        (JSON.parse(/data: (.*)/.exec(frame)?.[1] ?? "") as { sequence_number: number })
          .sequence_number,
    );
    expect(numbers).toEqual(numbers.map((_, index) => index));
    expect((await readByClient(repaired)).output).toEqual((await readByClient(whole)).output);
  },
);

test("OpenAI's client throws at such a stream as it came", async () => {
  const bare = (cassettes.get("plain-text") ?? []).filter(
    (frame) => !startNames.has(nameOf(frame)),
  );
  await expect(readByClient(bare.join("\n\n"))).rejects.toThrow();
});

test("a part of a summary begins once where its provider leaves out its place", async () => {
  const frames = cassettes.get("reasoning-then-text") ?? [];
  const placeless = frames.map((frame) => frame.replace(/"summary_index": ?\d+, ?/, ""));
  expect(placeless).not.toEqual(frames);
  expect(framesIn(await relayed(placeless)).map(nameOf)).toEqual(
    framesIn(await relayed(frames)).map(nameOf),
  );
});

test("a second creation of the response is left out", async () => {
  const [created = "", ...rest] = cassettes.get("plain-text") ?? [];
  const names = framesIn(await relayed([created, created, ...rest])).map(nameOf);
  expect(names.filter((name) => name === "response.created")).toHaveLength(1);
});

test("a call that is only done has begun first", async () => {
  const done = (cassettes.get("parallel-calls") ?? []).filter(
    (frame) => !/\.added$|arguments\.(delta|done)$/.test(nameOf(frame)),
  );
  const names = framesIn(await relayed(done)).map(nameOf);
  const items = names.filter((name) => name.startsWith("response.output_item."));
  expect(items.slice(0, 2)).toEqual(["response.output_item.added", "response.output_item.done"]);
  expect(items.filter((name) => name.endsWith("added"))).toHaveLength(items.length / 2);
});
