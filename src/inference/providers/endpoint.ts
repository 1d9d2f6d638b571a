import { editScanned, scanMembers, type Member } from "../../platform/kernel/json/json-members.ts";
import type { Loss } from "../canonical/request.ts";
import type { ProviderDeviations, UpstreamDialect } from "./provider-definition.ts";

/** The facts on which an endpoint's path may depend. */
export interface EndpointFacts {
  /** The wire name of the model. */
  upstreamModel: string;
  stream: boolean;
  deviations: ProviderDeviations;
}

type PathOf = (facts: EndpointFacts) => string;

/** The path and query of every dialect, below a provider's base URL. */
const paths: Partial<Record<UpstreamDialect, PathOf>> = {
  "openai-chat": () => "/chat/completions",
  "openai-responses": () => "/responses",
  "anthropic-messages": messagesPath,
  "google-generate": (facts) =>
    `${googleResource(facts)}:${facts.stream ? "streamGenerateContent?alt=sse" : "generateContent"}`,
  "amazon-converse": (facts) =>
    `${bedrockModel(facts)}/${facts.stream ? "converse-stream" : "converse"}`,
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
  // Requests of these surfaces name their own paths.
  "openai-images": () => "/images/generations",
  "google-images": (facts) => `${googleResource(facts)}:generateContent`,
  "openai-audio": () => "/audio/transcriptions",
  "google-audio": (facts) => `${googleResource(facts)}:generateContent`,
  deepgram: () => "/listen",
  elevenlabs: () => "/speech-to-text",
  // Sessions are opened at addresses of their own (`realtime-target.ts`).
  "azure-realtime": ({ upstreamModel }) =>
    `/realtime?deployment=${encodeURIComponent(upstreamModel)}`,
  "google-live": () => "/ws",
  "openai-realtime": ({ upstreamModel }) => `/realtime?model=${encodeURIComponent(upstreamModel)}`,
};

/** Dialects that have an endpoint to be sent to. */
export const sendableDialects: ReadonlySet<UpstreamDialect> = new Set(
  Object.keys(paths) as UpstreamDialect[],
);

/**
 * Returns the path below a provider's base URL for requests of a dialect; undefined for dialects
 * that cannot be sent yet.
 */
export const endpointPath = (dialect: UpstreamDialect, facts: EndpointFacts): string | undefined =>
  paths[dialect]?.(facts);

/**
 * Returns the path at which the tokens of a prompt are counted, from the path of its answer: a verb
 * of its own at Google, and one more segment in Messages.
 */
export const countPath = (answerPath: string): string => {
  const verb = answerPath.search(/:(?:streamGenerate|generate)Content/);
  return verb < 0 ? `${answerPath}/count_tokens` : `${answerPath.slice(0, verb)}:countTokens`;
};

function messagesPath(facts: EndpointFacts): string {
  const { upstreamModel, stream, deviations } = facts;
  if (deviations.messagesPath === "raw-predict")
    return `/${upstreamModel}:${stream ? "streamRawPredict" : "rawPredict"}`;
  if (deviations.messagesPath === undefined) return "/messages";
  return `${bedrockModel(facts)}/${stream ? "invoke-with-response-stream" : "invoke"}`;
}

/**
 * Returns a Bedrock model name for use in a path: names contain colons, those of inference profiles
 * slashes too.
 */
const bedrockModel = ({ upstreamModel }: EndpointFacts): string =>
  `/model/${encodeURIComponent(upstreamModel)}`;

function googleResource({ upstreamModel }: EndpointFacts): string {
  return `/${googleModelName(upstreamModel)}`;
}

/**
 * Returns a model's name as Google writes it; tuned models are in a collection of their own and
 * named with it.
 */
export const googleModelName = (upstreamModel: string): string =>
  /^(?:models|tunedModels)\//.test(upstreamModel) ? upstreamModel : `models/${upstreamModel}`;

/** A request in its upstream's dialect, before its endpoint's own adjustments. */
export interface EndpointRequest {
  /** The JSON text of the body. */
  text: string;
  /** Headers beside the provider's own; lower-case names. */
  headers: Readonly<Record<string, string>>;
}

/** The request as the endpoint accepts it, and what had to be left out. */
export interface FittedRequest extends EndpointRequest {
  losses: readonly Loss[];
}

/** The version that every Messages server supports; that of 2026-10-21 refuses sampling. */
const messagesVersion = "2023-06-01";

/**
 * Adjusts a request to its provider's endpoint. Messages requests always state their version, in a
 * header or, with Claude on Vertex AI and Bedrock, in the body; there the path names the model.
 * Every other character of the body stays as it is.
 */
export function fitToEndpoint(
  request: EndpointRequest,
  { dialect, deviations }: { dialect: UpstreamDialect; deviations: ProviderDeviations },
): FittedRequest {
  if (dialect !== "anthropic-messages") return { ...request, losses: [] };
  const { betas, lost } = knownBetas(request.headers["anthropic-beta"], deviations);
  const {
    "anthropic-version": version = messagesVersion,
    "anthropic-beta": _beta,
    "anthropic-user-profile-id": profile,
    "anthropic-workspace-id": workspace,
    ...headers
  } = request.headers;
  const named = {
    ...(profile !== undefined && { "anthropic-user-profile-id": profile }),
    ...(workspace !== undefined && { "anthropic-workspace-id": workspace }),
  };
  const betaHeader = betas.length === 0 ? {} : { "anthropic-beta": betas.join(",") };
  const betaLosses = lost.map(
    (beta): Loss => ({
      field: `anthropic-beta.${beta}`,
      reason: "the provider does not know this beta",
    }),
  );
  if (deviations.bodyVersion === undefined) {
    return {
      text: request.text,
      headers: { ...headers, ...named, "anthropic-version": version, ...betaHeader },
      losses: betaLosses,
    };
  }
  const isInvoked = deviations.messagesPath === "invoke-model";
  const members = scanMembers(request.text);
  const { eagerBeta } = deviations;
  const plain = eagerBeta === undefined ? undefined : plainTools(request.text, members);
  if (eagerBeta !== undefined && plain?.isEager === true && !betas.includes(eagerBeta))
    betas.push(eagerBeta);
  const unknown = (deviations.unknownMessagesFields ?? []).filter((field) =>
    members.some(({ key }) => key === field),
  );
  return {
    text: editBody(request.text, {
      members,
      betas: isInvoked ? betas : [],
      unknown,
      tools: plain?.tools,
      deviations,
    }),
    headers: isInvoked ? headers : { ...headers, ...betaHeader },
    losses: [
      ...betaLosses,
      ...[...Object.keys(named), ...unknown].map(
        (field): Loss => ({ field, reason: "the provider does not take it" }),
      ),
    ],
  };
}

/**
 * Edits the body. At Bedrock the path says whether the answer is streamed and the body names the
 * betas; Vertex AI has both as Anthropic does.
 */
function editBody(
  text: string,
  {
    members,
    betas,
    unknown,
    tools,
    deviations: { messagesPath, bodyVersion },
  }: {
    members: readonly Member[];
    betas: readonly string[];
    unknown: readonly string[];
    tools: string | undefined;
    deviations: ProviderDeviations;
  },
): string {
  const inPath =
    messagesPath === undefined
      ? []
      : messagesPath === "invoke-model"
        ? ["model", "stream"]
        : ["model"];
  const removed = [...inPath, ...unknown];
  return editScanned(
    text,
    members,
    new Map<string, string | undefined>([
      ...removed.map((field) => [field, undefined] as const),
      ...(tools === undefined ? [] : [["tools", tools] as const]),
      ["anthropic_version", JSON.stringify(bodyVersion)],
      ...(betas.length === 0 ? [] : [["anthropic_beta", JSON.stringify(betas)] as const]),
    ]),
  );
}

/** The member by which Anthropic's tools ask for arguments as they come. */
const eagerField = "eager_input_streaming";

/** Returns the tools of a body without that member, and whether one asks; undefined where none has it. */
function plainTools(
  text: string,
  members: readonly Member[],
): { tools: string; isEager: boolean } | undefined {
  const member = members.find(({ key }) => key === "tools");
  const written = member === undefined ? "" : text.slice(member.valueStart, member.valueEnd);
  if (!written.includes(`"${eagerField}"`)) return undefined;
  const tools: unknown = JSON.parse(written);
  if (!Array.isArray(tools)) return undefined;
  let isEager = false;
  const plain = tools.map((tool: unknown) => {
    const { [eagerField]: asked, ...rest } = Object(tool) as Record<string, unknown>;
    isEager ||= asked === true;
    return rest;
  });
  return { tools: JSON.stringify(plain), isEager };
}

function knownBetas(
  header: string | undefined,
  deviations: ProviderDeviations,
): { betas: string[]; lost: string[] } {
  const asked = (header ?? "")
    .split(",")
    .map((beta) => beta.trim())
    .filter((beta) => beta !== "");
  const isKnown = (beta: string): boolean => deviations.knownBetas?.includes(beta) ?? true;
  return { betas: asked.filter(isKnown), lost: asked.filter((beta) => !isKnown(beta)) };
}
