import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { ScriptedDialect as DialectId } from "../../support/scripted-upstream/scripted-upstream.ts";
import { json, stream } from "../../support/upstream/steps.ts";
import { settledRow } from "../scenarios/support/settled-rows.ts";
import { eventsOfWhole } from "./pairs/streamed-answer.ts";
import { chat, gemini, message, response, said } from "./pairs/upstream-heads.ts";
import type { AnyClientName, ClientDialect } from "./support/client-dialect.ts";
import { fieldsOf, type Fields } from "./support/json-value.ts";
import { providerId, startMatrix, type MatrixScene } from "./support/matrix-scene.ts";
import { allClients, clients } from "./support/pairs.ts";
import type { Reply } from "./support/reply.ts";
import { readEvents } from "./support/wire-events.ts";

let scene: MatrixScene;
beforeAll(async () => {
  scene = await startMatrix();
});
afterAll(() => scene.end());

/** One answer, and what clients of the other dialects cannot be given of it. */
interface LossyAnswer {
  what: string;
  upstream: DialectId;
  answer: Fields;
  lost: Partial<Record<AnyClientName, readonly string[]>>;
  /** What a client asks in place of "Go". */
  asks?: Partial<Record<AnyClientName, Fields>>;
}

const pixel = "iVBORw0KGgo=";
const chatSays = (more: Fields): Fields =>
  chat({ message: { role: "assistant", content: "So.", ...more }, finish_reason: "stop" });
const claudeSays = (...blocks: Fields[]): Fields =>
  message([{ type: "text", text: "So." }, ...blocks], { stop_reason: "end_turn" });

const answers: readonly LossyAnswer[] = [
  {
    what: "an image, inline",
    upstream: "openai-chat",
    answer: chatSays({
      images: [{ type: "image_url", image_url: { url: `data:image/png;base64,${pixel}` } }],
    }),
    lost: { "anthropic-messages": ["answer.image"] },
  },
  {
    what: "two images by URL",
    upstream: "openai-chat",
    answer: chatSays({
      images: [1, 2].map((n) => ({
        type: "image_url",
        image_url: { url: `https://x.test/${n}.png` },
      })),
    }),
    lost: {
      "anthropic-messages": ["answer.image"],
      "openai-responses": ["answer.image"],
      "google-generate": ["answer.image"],
    },
  },
  {
    what: "audio with its transcript",
    upstream: "openai-chat",
    answer: chatSays({ content: null, audio: { id: "a1", data: "UklGRg==", transcript: "So." } }),
    lost: { "anthropic-messages": ["answer.audio"], "openai-responses": ["answer.audio"] },
  },
  {
    what: "an image from Gemini",
    upstream: "google-generate",
    answer: gemini(
      [{ text: "So." }, { inlineData: { mimeType: "image/png", data: pixel } }],
      "STOP",
    ),
    lost: { "anthropic-messages": ["answer.image"] },
  },
  {
    what: "audio from Gemini",
    upstream: "google-generate",
    answer: gemini(
      [{ text: "So." }, { inlineData: { mimeType: "audio/wav", data: "UklGRg==" } }],
      "STOP",
    ),
    lost: { "anthropic-messages": ["answer.audio"], "openai-responses": ["answer.audio"] },
  },
  {
    what: "code that Gemini executed, and its result",
    upstream: "google-generate",
    answer: gemini(
      [
        { executableCode: { language: "PYTHON", code: "1" } },
        { codeExecutionResult: { outcome: "OUTCOME_OK", output: "1" } },
        { text: "So." },
      ],
      "STOP",
    ),
    lost: Object.fromEntries(
      clients.map(({ name }) => [name, ["answer.executableCode", "answer.codeExecutionResult"]]),
    ),
  },
  {
    what: "a web search and an image generation by OpenAI",
    upstream: "openai-responses",
    answer: response([
      {
        id: "ws_1",
        type: "web_search_call",
        status: "completed",
        action: { type: "search", query: "q" },
      },
      {
        id: "ig_1",
        type: "image_generation_call",
        status: "completed",
        result: pixel,
        output_format: "png",
      },
      said("So."),
    ]),
    lost: {
      "openai-chat": ["answer.web_search_call"],
      "anthropic-messages": ["answer.image"],
      "google-generate": ["answer.web_search_call"],
    },
  },
  {
    what: "a web search by Anthropic",
    upstream: "anthropic-messages",
    answer: claudeSays({
      type: "server_tool_use",
      id: "srvtoolu_1",
      name: "web_search",
      input: { query: "q" },
    }),
    lost: {
      "openai-chat": ["answer.server_tool_use"],
      "google-generate": ["answer.server_tool_use"],
    },
  },
  {
    what: "a document citation",
    upstream: "anthropic-messages",
    answer: message(
      [
        {
          type: "text",
          text: "So.",
          citations: [
            {
              type: "char_location",
              cited_text: "c",
              document_index: 0,
              document_title: "d",
              start_char_index: 0,
              end_char_index: 1,
            },
          ],
        },
      ],
      { stop_reason: "end_turn" },
    ),
    lost: {
      "openai-chat": ["answer.annotations"],
      "openai-responses": ["answer.annotations"],
      "google-generate": ["answer.annotations"],
    },
  },
  {
    what: "a second tool call for a client of the older functions field",
    upstream: "anthropic-messages",
    answer: message(
      ["a", "b"].map((id) => ({ type: "tool_use", id: `toolu_${id}`, name: "f", input: {} })),
      { stop_reason: "tool_use" },
    ),
    asks: {
      "openai-chat": { functions: [{ name: "f", parameters: { type: "object", properties: {} } }] },
    },
    lost: { "openai-chat": ["answer.tool_calls"] },
  },
];

async function ask(
  { upstream, answer, asks }: LossyAnswer,
  client: ClientDialect,
  streamed: boolean,
): Promise<Reply> {
  scene.upstreams[upstream].script(
    streamed ? stream(eventsOfWhole(upstream, answer)) : json(answer),
  );
  return scene.ask(
    client,
    { ...client.ask("Go"), ...asks?.[client.name], stream: streamed },
    { providers: [providerId(upstream)] },
  );
}

/** The losses of an answer that its generation record has. */
async function recorded({ headers }: Reply): Promise<string[]> {
  const row = await settledRow(scene.gateway, headers.get("x-service-trace-id"));
  return (row?.detail.translationLosses ?? [])
    .map(({ field }) => field)
    .filter((field) => field.startsWith("answer."));
}

const inHeader = ({ headers }: Reply): string[] =>
  (headers.get("x-service-translation-loss") ?? "")
    .split(", ")
    .filter((field) => field.startsWith("answer."));

describe.each(answers.map((row) => [row.what, row] as const))("%s", (_, row) => {
  test.each(allClients.map((client) => [client.name, client] as const))(
    "losses are reported to a client of %s",
    async (name, client) => {
      const lost = [...(row.lost[name] ?? [])];
      const whole = await ask(row, client, false);
      expect([whole.status, inHeader(whole), await recorded(whole)]).toEqual([200, lost, lost]);

      const streamed = await ask(row, client, true);
      const { metadata } = client.readStream(readEvents(streamed.raw).events);
      const { translationLoss } = fieldsOf(metadata);
      // The headers of a stream have gone before its answer.
      expect([
        streamed.errors,
        inHeader(streamed),
        translationLoss ?? [],
        await recorded(streamed),
      ]).toEqual([[], [], lost, lost]);
      if (client.name !== row.upstream) expect(streamed.breaches).toEqual([]);
    },
  );
});
