import type { ConfiguredModel } from "../../inference/catalog/configured/configured-provider.ts";

/** What a model does: a surface of the gateway, or `none` where it has no such surface. */
export type ModelKind = NonNullable<ConfiguredModel["surface"]> | "none";

const kindsOfModes: Readonly<Record<string, ModelKind>> = {
  chat: "chat",
  completion: "chat",
  responses: "chat",
  batch: "chat",
  embedding: "embeddings",
  rerank: "rerank",
  moderation: "moderations",
};

/** Names of models by what they do, in the order in which they are tried. */
const kindsOfNames: readonly (readonly [RegExp, ModelKind])[] = [
  [/re-?rank/, "rerank"],
  [/embed|(?:^|\/)(?:bge|gte|e5|voyage)-|minilm/, "embeddings"],
  [/moderation/, "moderations"],
  [/(?:^|\/)(?:dall-e|gpt-image|chatgpt-image|imagen|veo|sora|flux|stable-diffusion|sd3)/, "none"],
  [/whisper|transcribe|(?:^|[/-])tts(?:-|$)|(?:^|\/)(?:eleven_|scribe_)|-image(?:-|$)/, "none"],
];

/** Returns what a mode of LiteLLM means: `none` for one that has no surface here. */
export const kindOfMode = (mode: string): ModelKind => kindsOfModes[mode] ?? "none";

/** Returns what a model's name says that it does; undefined where it says nothing. */
export const kindOfName = (name: string): ModelKind | undefined =>
  kindsOfNames.find(([pattern]) => pattern.test(name.toLowerCase()))?.[1];
