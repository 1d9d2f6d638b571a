import { provider } from "../../../support/gateway.ts";
import { json, type Script } from "../../../support/upstream/steps.ts";
import type { RecordedRequest } from "../../../support/upstream/recorded-request.ts";
import {
  startScene,
  shortTimeouts,
  type Scene,
  type SceneOptions,
} from "../../scenarios/support/scene.ts";

/** USD per million tokens in and out: acme's, and the backup's, which are twice that. */
export const acmePrice = { prompt: "1.00", completion: "2.00" };
const backupPrice = { prompt: "2.00", completion: "4.00" };

type Dialects = Partial<
  Record<"chat" | "embeddings" | "rerank" | "moderations" | "decisions", string>
>;

const acmeDialects: Dialects = {
  chat: "openai-chat",
  embeddings: "openai-embeddings",
  rerank: "cohere-rerank",
  moderations: "guard-chat",
  decisions: "decisions",
};
const backupDialects: Dialects = {
  chat: "openai-chat",
  embeddings: "cohere-embed",
  rerank: "jina-rerank",
  moderations: "openai-moderations",
  decisions: "chat-logprobs",
};

const modelsAt = (pricing: object) => [
  { id: "acme/embed", surface: "embeddings", context_length: 8_192, pricing },
  { id: "acme/rerank", surface: "rerank", context_length: 4_096, pricing },
  { id: "acme/llama-guard-4", surface: "moderations", context_length: 8_192, pricing },
  // Without a price: no caller is charged for decisions.
  { id: "acme/decide", surface: "decisions", context_length: 8_192 },
  { id: "acme/large", context_length: 8_192, pricing },
];

/** What a scene of other surfaces than chat may differ in. */
export interface SurfaceSceneOptions extends Omit<SceneOptions, "providers"> {
  acme?: Dialects;
  /** Models that acme has beside the usual ones. */
  more?: readonly object[];
  /** Acme's timeouts; short ones unless a test keeps the machine busy. */
  timeouts?: object;
}

/**
 * A gateway before acme and a backup that serve the same models in other dialects, acme for half
 * the price.
 */
export const startSurfaceScene = ({
  acme = {},
  more = [],
  timeouts = shortTimeouts,
  ...options
}: SurfaceSceneOptions = {}): Promise<Scene> =>
  startScene({
    ...options,
    providers: (first, second) => [
      provider({
        id: "acme",
        name: "Acme Inference",
        base_url: first,
        dialect: { ...acmeDialects, ...acme },
        api_key: "upstream-secret",
        timeouts_ms: timeouts,
        models: [...modelsAt(acmePrice), ...more],
      }),
      ...(options.withBackup === false
        ? []
        : [
            provider({
              id: "backup",
              name: "Backup Inference",
              base_url: second,
              dialect: backupDialects,
              api_key: "upstream-secret",
              models: modelsAt(backupPrice),
            }),
          ]),
    ],
  });

/** Tries acme first and the backup second. */
export const inOrder = { headers: { "x-service-provider": "acme,backup" } };

/** A script that answers each request with what a function makes of its body. */
export const answering =
  (answerOf: (body: Record<string, unknown>, request: RecordedRequest) => unknown) =>
  (request: RecordedRequest): Script =>
    json(answerOf(request.json() as Record<string, unknown>, request));

/** Returns the vector of a text in these tests: its length and its first character. */
export const vectorOf = (text: string): [number, number] => [text.length, text.charCodeAt(0)];

/**
 * OpenAI's answer to a request for embeddings, a token for each text; its entries in the wrong
 * order.
 */
export const openaiVectors = answering(({ input }) => {
  const texts = (Array.isArray(input) ? input : [input]) as string[];
  const data = texts
    .map((text, index) => ({ object: "embedding", index, embedding: vectorOf(text) }))
    .reverse();
  return {
    object: "list",
    data,
    model: "embed",
    usage: { prompt_tokens: texts.length, total_tokens: texts.length },
  };
});

/** Cohere's answer to the same. */
export const cohereVectors = answering(
  ({
    texts,
    embedding_types: [type] = ["float"],
  }: {
    texts?: string[];
    embedding_types?: string[];
  }) => ({
    id: "e1",
    embeddings: { [type ?? "float"]: texts?.map(vectorOf) },
    meta: { billed_units: { input_tokens: texts?.length } },
  }),
);

/** A chat completion that says a text, for ten tokens in and two out. */
export const said = (text: string, more: object = {}) => ({
  id: "chatcmpl-1",
  object: "chat.completion",
  created: 1,
  model: "m",
  choices: [
    { index: 0, message: { role: "assistant", content: text }, finish_reason: "stop", ...more },
  ],
  usage: { prompt_tokens: 10, completion_tokens: 2, total_tokens: 12 },
});

/** Where in a chat request the user's words are. */
export const userText = (body: Record<string, unknown>): string =>
  String(
    (body["messages"] as { role: string; content: unknown }[]).find(({ role }) => role === "user")
      ?.content,
  );
