import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { ScriptedDialect as DialectId } from "../../support/scripted-upstream/scripted-upstream.ts";
import { wireOf } from "../../support/scripted-upstream/scripted-upstream.ts";
import { json, stream } from "../../support/upstream/steps.ts";
import { wireEvents } from "../../support/upstream/upstream-wire.ts";
import { answerCases } from "./pairs/answers.ts";
import { documentCases } from "./pairs/documents.ts";
import { mediaCases } from "./pairs/media.ts";
import type { ClientName } from "./support/client-dialect.ts";
import type { AskedCase, PairName } from "./pairs/pair-case.ts";
import { eventsOfWhole } from "./pairs/streamed-answer.ts";
import { textCases } from "./pairs/text.ts";
import { thinkingAndOutputCases } from "./pairs/thinking-and-output.ts";
import { toolResultCases } from "./pairs/tool-results.ts";
import { toolCases } from "./pairs/tools.ts";
import { fieldsOf, type Fields } from "./support/json-value.ts";
import { providerId, startMatrix, type MatrixScene } from "./support/matrix-scene.ts";
import { nameOf, pairs, type Pair } from "./support/pairs.ts";
import type { Reply } from "./support/reply.ts";

let scene: MatrixScene;
beforeAll(async () => {
  scene = await startMatrix();
});
afterAll(() => scene.end());

const rows = pairs.map((pair) => [nameOf(pair) as PairName, pair] as const);
const kinds = [false, true] as const;

/** What every request has that goes to an upstream, streamed or not. */
const everyRequest = (streamed: boolean): Readonly<Record<DialectId, Fields>> => ({
  "openai-chat": {
    model: "large-v2",
    max_tokens: 300,
    ...(streamed && { stream: true, stream_options: { include_usage: true } }),
  },
  "anthropic-messages": { model: "large-v2", max_tokens: 300, ...(streamed && { stream: true }) },
  "openai-responses": {
    model: "large-v2",
    max_output_tokens: 300,
    store: false,
    ...(streamed && { stream: true }),
  },
  "google-generate": { generationConfig: { maxOutputTokens: 300 } },
});

/** Returns a path into a conversation as a client wrote it: Responses has it under `input`. */
const inDialect = (path: string, { client }: Pair<ClientName>): string =>
  client.name === "openai-responses" ? path.replace(/^messages/, "input") : path;

/** An id of the caller's user as the platform's account shows it: a keyed hash of workspace and id. */
const scopedId: unknown = expect.stringMatching(/^[\w-]{43}$/);

/** Returns the members that name the caller's user, as a provider gets them. */
const scopedIds = ({ user, metadata }: Fields): Fields => ({
  ...(user !== undefined && { user: scopedId }),
  ...(fieldsOf(metadata).user_id !== undefined && {
    metadata: { ...fieldsOf(metadata), user_id: scopedId },
  }),
});

/** Who asks whom, and how. */
interface Asking {
  pair: Pair<ClientName>;
  streamed: boolean;
}

/** The body that an upstream must get of a client that speaks another dialect. */
function expectedRequest({ gets, except }: AskedCase, { pair, streamed }: Asking): Fields {
  const { upstream } = pair;
  const every = everyRequest(streamed)[upstream];
  const own = { ...gets[upstream], ...except?.[nameOf(pair) as PairName] };
  const generation = { ...fieldsOf(every.generationConfig), ...fieldsOf(own.generationConfig) };
  return {
    ...every,
    ...own,
    ...scopedIds(own),
    ...(upstream === "google-generate" && { generationConfig: generation }),
  };
}

/**
 * Sends what a client asks to an upstream that answers well; gives the reply, and the body that the
 * upstream got.
 */
async function asked(
  row: AskedCase,
  { pair: { client, upstream }, streamed }: Asking,
): Promise<{ reply: Reply; got: Fields | undefined }> {
  const wire = wireOf(upstream);
  const { requests } = scene.upstreams[upstream];
  const before = requests.length;
  scene.upstreams[upstream].script(streamed ? stream(wireEvents(wire)) : json(wire.whole));
  const { messages: _messages, input: _input, ...bound } = client.ask("");
  const reply = await scene.ask(
    client,
    { ...bound, ...row.asks[client.name], stream: streamed },
    { providers: [providerId(upstream)] },
  );
  return { reply, got: requests.length > before ? fieldsOf(requests.at(-1)?.json()) : undefined };
}

const askedCases = [
  ...textCases,
  ...mediaCases,
  ...documentCases,
  ...toolCases,
  ...toolResultCases,
  ...thinkingAndOutputCases,
];

describe.each(askedCases.map((row) => [row.what, row] as const))("request: %s", (_, row) => {
  test.each(rows)("%s", async (name, pair) => {
    const { client, upstream } = pair;
    const refused =
      client.name === upstream ? undefined : (row.refuses?.[name] ?? row.refuses?.[upstream]);
    for (const streamed of kinds) {
      const { reply, got } = await asked(row, { pair, streamed });
      expect(reply.breaches).toEqual([]);
      if (client.name === upstream) {
        // The client's own fields, but for the model's name, its user's id and the gateway's fields.
        const own = row.asks[client.name];
        expect(got).toMatchObject({ ...own, ...scopedIds(own), model: "large-v2" });
        expect([got?.provider, reply.headers.get("x-service-translation-loss")]).toEqual([
          undefined,
          null,
        ]);
      } else if (refused !== undefined) {
        expect([reply.status, got]).toEqual([400, undefined]);
        expect(reply.body.error).toMatchObject({
          code: "unsupported_content",
          param: inDialect(refused, pair),
        });
      } else {
        expect(got).toEqual(expectedRequest(row, { pair, streamed }));
        const losses = row.losses?.[name] ?? row.losses?.[upstream] ?? [];
        expect(reply.headers.get("x-service-translation-loss") ?? "").toBe(
          losses.map((path) => inDialect(path, pair)).join(", "),
        );
      }
    }
  });
});

describe.each(answerCases.map((row) => [row.what, row] as const))(
  "response: %s",
  (_, { answers, sees, except }) => {
    test.each(rows)("%s, whole and streamed", async (name, { client, upstream }) => {
      const replies: Reply[] = [];
      for (const streamed of kinds) {
        const answer = answers[upstream];
        scene.upstreams[upstream].script(
          streamed ? stream(eventsOfWhole(upstream, answer)) : json(answer),
        );
        replies.push(
          await scene.ask(
            client,
            { ...client.ask("Go"), stream: streamed },
            { providers: [providerId(upstream)] },
          ),
        );
      }
      for (const { status, errors, endings, breaches, body } of replies) {
        expect([status, errors, endings, breaches]).toEqual([200, [], 1, []]);
        expect(body).toMatchObject({ ...sees[client.name], ...except?.[name] });
      }
      const [whole, streamed] = replies.map(
        ({ said, refused, thought, seals, calls, finish, usage, costUsd }) => ({
          said,
          refused,
          thought,
          seals,
          // A chat stream that passes through may omit a call's arguments; a whole answer has `{}`.
          calls: calls.map((call) => ({ ...call, arguments: call.arguments || "{}" })),
          finish,
          usage,
          costUsd,
        }),
      );
      expect(streamed).toEqual(whole);
    });
  },
);
