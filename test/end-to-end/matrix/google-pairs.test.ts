import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { wireOf } from "../../support/scripted-upstream/scripted-upstream.ts";
import { json, stream } from "../../support/upstream/steps.ts";
import { answerCases } from "./pairs/answers.ts";
import { documentCases } from "./pairs/documents.ts";
import { mediaCases } from "./pairs/media.ts";
import { eventsOfWhole } from "./pairs/streamed-answer.ts";
import { textCases } from "./pairs/text.ts";
import { thinkingAndOutputCases } from "./pairs/thinking-and-output.ts";
import { toolResultCases } from "./pairs/tool-results.ts";
import { toolCases } from "./pairs/tools.ts";
import { chatClient } from "./support/chat-client.ts";
import type { ClientDialect } from "./support/client-dialect.ts";
import { googleClient } from "./support/google-client.ts";
import { fieldsOf, type Fields } from "./support/json-value.ts";
import { providerId, startMatrix, type MatrixScene } from "./support/matrix-scene.ts";
import { upstreams } from "./support/pairs.ts";
import type { Reply } from "./support/reply.ts";

let scene: MatrixScene;
beforeAll(async () => {
  scene = await startMatrix();
});
afterAll(() => scene.end());

type Upstream = (typeof upstreams)[number];

/**
 * Cases in which Google's dialect says less than the clients of the table, and why. What an upstream
 * gets then is recorded, or the status of the refusal.
 */
const saidLess: Readonly<Record<string, string>> = {
  "instructions at the head and later on": "later instructions are a user's text",
  "an image by address and one inline": "a picture has no detail",
  "a PDF inline": "a file has no name",
  "a document of plain text": "a text has no name, and is a text",
  "a PDF by address": "chat takes no addresses of files",
  sound: "Messages has no sound",
  "tools, of which one at a time must be called": "calls are not limited, and no tool is strict",
  "a call that was never answered": "results have the name of their tool",
  "parallel calls with their results, of which one failed": "results have the name of their tool",
  "a picture in a tool's result": "a result has no pictures, which are the user's",
  "an effort": "thoughts are shown where they are asked for",
  "thinking turned on, by Messages with a budget": "thoughts are shown where they are asked for",
  "thinking turned off": "the level is low instead of none",
  "structured output": "a schema has no name and is not strict",
  "sampling, stop texts and an end user": "there is a seed, and no end user",
};

/** What every request has that goes to an upstream. */
const everyRequest: Readonly<Record<Upstream, Fields>> = {
  "openai-chat": { model: "large-v2", max_tokens: 300 },
  "anthropic-messages": { model: "large-v2", max_tokens: 300 },
  "openai-responses": { model: "large-v2", max_output_tokens: 300, store: false },
  "google-generate": {},
};

const lastBody = (upstream: Upstream): unknown => scene.upstreams[upstream].requests.at(-1)?.json();

const cases = [
  ...textCases,
  ...mediaCases,
  ...documentCases,
  ...toolCases,
  ...toolResultCases,
  ...thinkingAndOutputCases,
].filter(({ gets }) => gets["google-generate"] !== undefined);

describe.each(cases.map((row) => [row.what, row] as const))("request: %s", (what, { gets }) => {
  test.each(upstreams)("google-generate -> %s", async (upstream) => {
    const asked = gets["google-generate"] ?? {};
    const generationConfig = { maxOutputTokens: 300, ...fieldsOf(asked.generationConfig) };
    scene.upstreams[upstream].script(json(wireOf(upstream).whole));
    const reply = await scene.ask(
      googleClient,
      { ...asked, generationConfig },
      { providers: [providerId(upstream)] },
    );
    expect(reply.breaches).toEqual([]);
    const got = reply.status === 200 ? lastBody(upstream) : reply.status;
    if (upstream === "google-generate") expect(got).toEqual({ ...asked, generationConfig });
    else if (what in saidLess) expect(got).toMatchSnapshot();
    else expect(got).toEqual({ ...everyRequest[upstream], ...gets[upstream] });
  });
});

describe.each(answerCases.map((row) => [row.what, row] as const))(
  "response: %s",
  (_, { answers }) => {
    test.each(upstreams)("google-generate -> %s, whole and streamed", async (upstream) => {
      const answer = answers[upstream];
      const ask = (client: ClientDialect, streamed: boolean): Promise<Reply> => {
        scene.upstreams[upstream].script(
          streamed ? stream(eventsOfWhole(upstream, answer)) : json(answer),
        );
        return scene.ask(
          client,
          { ...client.ask("Go"), stream: streamed },
          { providers: [providerId(upstream)] },
        );
      };
      // Google counts no writes to a cache, has one word for two ends, and refuses in plain text.
      const meaningOf = ({ said, refused, thought, calls, finish, usage, costUsd }: Reply) => ({
        said: said + refused,
        thought,
        calls: calls.map(({ name, arguments: text }) => [
          name,
          JSON.parse(text || "{}") as unknown,
        ]),
        finish: finish === "stop_sequence" ? "stop" : finish,
        usage: usage && { ...usage, written: undefined },
        costUsd,
      });
      const told = meaningOf(await ask(chatClient, false));
      for (const streamed of [false, true]) {
        const reply = await ask(googleClient, streamed);
        expect([reply.status, reply.endings, reply.breaches]).toEqual([200, 1, []]);
        expect(meaningOf(reply)).toEqual(told);
      }
    });
  },
);
