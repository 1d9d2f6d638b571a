import type { Endpoint } from "../../access/define-endpoint.ts";
import { chatRequestSchema } from "../../inference/dialects/openai-chat/request-schema.ts";
import { chatCompletions, type ChatServices } from "../inference/chat-completions.ts";

/** Azure's path of a deployment. A slash in its name is encoded, or left as it is. */
const deployments = ["/openai/deployments/:name", "/openai/deployments/:name/:slug"] as const;

/** Serves chat at the path of Azure's clients, whose deployments are models or names of models. */
export const azureChat: Endpoint<ChatServices> = {
  ...chatCompletions,
  path: `${deployments[0]}/chat/completions`,
  alsoAt: [`${deployments[1]}/chat/completions`],
  base: "root",
  summary: "Create a chat completion at Azure's path.",
  description:
    "For clients of Azure OpenAI: the deployment is the id of a model or one of the operator's names. `api-version` is ignored. Send " +
    "the key as `api-key` or as `Authorization: Bearer`. Below a deployment there are also `/completions`, `/embeddings`, " +
    "`/images/generations`, `/images/edits`, `/audio/transcriptions`, `/audio/translations` and `/audio/speech`; below `/openai/v1` " +
    "and `/openai` the endpoints of OpenAI's API that the gateway serves.",
  rawBody: chatRequestSchema.partial({ model: true }),
};

/**
 * The paths that Azure serves by deployment, beside chat's. Source: `_deployments_endpoints` of
 * OpenAI's clients for Azure.
 */
const deployed: ReadonlySet<string> = new Set([
  "/completions",
  "/embeddings",
  "/images/generations",
  "/images/edits",
  "/audio/transcriptions",
  "/audio/translations",
  "/audio/speech",
  "/batches",
  // Where the AI SDK asks for its default kind of model, if it is set to go by deployment.
  "/responses",
]);

/** Matches the paths of OpenAI's API that Azure's clients ask for. */
const openaiPath = new RegExp(
  `^/(?:${[
    ...["chat/completions", "completions", "embeddings", "moderations"],
    ...["images/(?:generations|edits)", "audio/\\w+", "models(?:/:\\w+){0,2}"],
    "(?:responses|files|uploads|batches|realtime)(?:/.*)?",
  ].join("|")})$`,
);

/** Returns the further paths of an endpoint for Azure's clients, by version and by date. */
function azurePathsOf({ base, path }: Pick<Endpoint<never>, "base" | "path">): string[] {
  if (base !== "api" || !openaiPath.test(path)) return [];
  const below = deployed.has(path) ? deployments.map((place) => place + path) : [];
  return [`/openai/v1${path}`, `/openai${path}`, ...below];
}

/**
 * Returns the endpoints, those of OpenAI's API also at the paths of Azure's clients. Access,
 * limits and records are those of the endpoint itself.
 */
export const withAzurePaths = <Dependencies>(
  endpoints: readonly Endpoint<Dependencies>[],
): readonly Endpoint<Dependencies>[] =>
  endpoints.map((endpoint) => {
    const paths = azurePathsOf(endpoint);
    return paths.length === 0
      ? endpoint
      : { ...endpoint, alsoAt: [...(endpoint.alsoAt ?? []), ...paths] };
  });
