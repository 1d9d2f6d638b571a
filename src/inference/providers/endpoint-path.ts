import type { ProviderQuirks, UpstreamDialect } from "./provider-definition.ts";

/** What an endpoint's path may depend on. */
export interface EndpointFacts {
  /** Wire name of the model. */
  upstreamModel: string;
  stream: boolean;
  quirks: ProviderQuirks;
}

type PathOf = (facts: EndpointFacts) => string;

/** Path and query of every dialect, below a provider's base URL. */
const paths: Partial<Record<UpstreamDialect, PathOf>> = {
  "openai-chat": () => "/chat/completions",
  "openai-responses": () => "/responses",
  "anthropic-messages": messagesPath,
  "google-generate": (facts) =>
    `${googleResource(facts)}:${facts.stream ? "streamGenerateContent?alt=sse" : "generateContent"}`,
  "openai-embeddings": () => "/embeddings",
  "cohere-embed": () => "/embed",
  "voyage-embeddings": () => "/embeddings",
  "jina-embeddings": () => "/embeddings",
  "google-embed": (facts) => `${googleResource(facts)}:batchEmbedContents`,
  "cohere-rerank": () => "/rerank",
  "jina-rerank": () => "/rerank",
  "voyage-rerank": () => "/rerank",
  "openai-moderations": () => "/moderations",
  "guard-chat": () => "/chat/completions",
  decisions: () => "/decisions",
  "chat-logprobs": () => "/chat/completions",
};

/** Dialects that have an endpoint to be sent to. */
export const sendableDialects: ReadonlySet<UpstreamDialect> = new Set(
  Object.keys(paths) as UpstreamDialect[],
);

/** Where below a provider's base URL requests of a dialect go; undefined for dialects that are not sent in yet. */
export const endpointPath = (dialect: UpstreamDialect, facts: EndpointFacts): string | undefined =>
  paths[dialect]?.(facts);

function messagesPath({ upstreamModel, stream, quirks }: EndpointFacts): string {
  if (quirks.messagesPath === "raw-predict")
    return `/${upstreamModel}:${stream ? "streamRawPredict" : "rawPredict"}`;
  if (quirks.messagesPath === undefined) return "/messages";
  // Names of Bedrock hold colons, those of inference profiles slashes too.
  return `/model/${encodeURIComponent(upstreamModel)}/${stream ? "invoke-with-response-stream" : "invoke"}`;
}

function googleResource({ upstreamModel }: EndpointFacts): string {
  return `/${googleModelName(upstreamModel)}`;
}

/** A model's name as Google writes it; tuned models stand in a collection of their own and are named with it. */
export const googleModelName = (upstreamModel: string): string =>
  /^(?:models|tunedModels)\//.test(upstreamModel) ? upstreamModel : `models/${upstreamModel}`;
