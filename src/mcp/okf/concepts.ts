import { z } from "zod";
import { shownPath } from "../../http/endpoint.ts";
import { errorCatalog, type ErrorFacts } from "../../platform/kernel/errors.ts";
import type { ToolEndpoint, ToolContext } from "../tool.ts";
import { brand } from "../../platform/kernel/brand.ts";
import { countText } from "../../platform/kernel/count-text.ts";

/** The kinds of concepts. */
export const conceptTypes = ["model", "provider", "endpoint", "error", "term"] as const;

/**
 * A document of the Open Knowledge Format: Markdown behind YAML front matter, in which `type` is
 * required.
 */
interface Concept {
  /** The type and name, such as `error/insufficient_balance`. */
  id: string;
  type: (typeof conceptTypes)[number];
  title: string;
  description: string;
  /** Further facts for the front matter. */
  facts: Readonly<Record<string, unknown>>;
  /** Markdown. */
  body: string;
}

/**
 * Returns a concept as it is sent. Values of the front matter are written as JSON, which is a
 * subset of YAML 1.2.
 */
export function conceptDocument({ id, type, title, description, facts, body }: Concept): string {
  const front = Object.entries({
    type,
    id,
    title,
    description,
    source: brand.productName,
    ...facts,
  })
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}: ${JSON.stringify(value)}`);
  return ["---", ...front, "---", "", `# ${title}`, "", body, ""].join("\n");
}

/** Words of the service that its answers and documents use, with their meanings. */
const meanings: Readonly<Record<string, string>> = {
  attempt: "One request to one provider. A request that falls back has several attempts.",
  "BYOK key":
    "Your own key at a model provider, stored in the gateway. The provider bills the requests that it serves; the gateway charges 0.",
  "connected app":
    "An app to which a person granted scopes, with OAuth or a device code. It can be disconnected at any time.",
  credit: "One US dollar. Monthly credits are spent before purchased ones, which never expire.",
  generation:
    "One inference request that was served, failed or cancelled, and its record: tokens, cost, attempts and price.",
  hold: "Money that is reserved while a request is in progress, at most its worst-case cost. The unused part is released.",
  "LLM key": `A credential for inference, ${brand.llmKeyPrefix}... It may have limits, and lists of models and endpoints.`,
  "management key": `A credential for administration, ${brand.managementKeyFamilyPrefix}..., with scopes. It cannot be used for inference.`,
  preset:
    "A named set of request settings. A request names it as @preset/<slug>; settings in the request take precedence.",
  provider:
    "A vendor or server that serves models. Several may serve the same model, and routing chooses among them.",
  "routing preset": `A model id such as ${brand.routerOwner}/auto that chooses from a pool of models.`,
  scope:
    "A permission of a management key or a connected app, such as read:credits. write:X includes read:X.",
  workspace: "The owner of keys, credits, presets and records.",
};

const slugOf = (term: string): string => term.toLowerCase().replaceAll(" ", "-");

/** Concepts of the service's own words. */
const termConcepts: readonly Concept[] = Object.entries(meanings).map(([term, meaning]) => ({
  id: `term/${slugOf(term)}`,
  type: "term",
  title: term,
  description: meaning.split(". ")[0] ?? meaning,
  facts: {},
  body: meaning,
}));

const faults: Readonly<Record<ErrorFacts["fault"], string>> = {
  client: "the request",
  gateway: "the gateway",
  upstream: "the provider",
};

/** Concepts of the error codes, from the table that answers are built from. */
const errorConcepts: readonly Concept[] = Object.entries(errorCatalog).map(
  ([code, { status, type, retry, fault }]) => ({
    id: `error/${code}`,
    type: "error",
    title: code,
    description: `HTTP ${status}, ${type}; ${retry ? "may be retried" : "do not retry"}.`,
    facts: { status, category: type, retry, fault },
    body:
      `Answers with HTTP ${status} and the category \`${type}\`. The cause lies with ${faults[fault]}. ` +
      (retry
        ? "The same request may succeed later: retry with backoff, and honour `Retry-After`."
        : "Change the request before sending it again."),
  }),
);

const endpointSlug = ({ method, path }: ToolEndpoint): string =>
  `${method}${path}`
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replaceAll(/^-|-$/g, "");

/** Returns the concepts of the API's endpoints, from the route table. */
const endpointConcepts = (endpoints: readonly ToolEndpoint[]): Concept[] =>
  endpoints
    .filter(({ base }) => base === "api")
    .map((endpoint) => ({
      id: `endpoint/${endpointSlug(endpoint)}`,
      type: "endpoint",
      title: `${endpoint.method} ${shownPath(endpoint)}`,
      description: endpoint.summary,
      facts: {
        method: endpoint.method,
        path: shownPath(endpoint),
        scope: endpoint.access.managementScope,
      },
      body: [
        endpoint.summary,
        ...(endpoint.description === undefined ? [] : ["", endpoint.description]),
      ].join("\n"),
    }));

const modelsSchema = z.looseObject({
  data: z.array(
    z.looseObject({
      id: z.string(),
      display_name: z.string(),
      provider: z.string(),
      providers: z.array(z.string()),
      context_length: z.int(),
      capabilities: z.array(z.string()),
      description: z.string().optional(),
      pricing: z.looseObject({ input_per_1m: z.number(), output_per_1m: z.number() }),
    }),
  ),
});

/** Returns the concepts of the models that the caller can reach. */
async function modelConcepts({ ask }: ToolContext): Promise<Concept[]> {
  const { data } = modelsSchema.parse(
    await ask({ endpoint: "GET /models", query: { presets: "0" } }),
  );
  return data.map(({ id, display_name: title, description, pricing, ...model }) => ({
    id: `model/${id}`,
    type: "model",
    title,
    description: `${id}, ${model.context_length} tokens of context, by ${model.provider}.`,
    facts: {
      model: id,
      context_length: model.context_length,
      capabilities: model.capabilities,
      providers: model.providers,
      pricing,
    },
    body: [
      description ?? `A model of ${model.provider}.`,
      "",
      `- Price: ${pricing.input_per_1m} USD per million input tokens, ${pricing.output_per_1m} USD per million output tokens`,
      `- Capabilities: ${model.capabilities.join(", ")}`,
      `- Served by: ${model.providers.join(", ")}`,
    ].join("\n"),
  }));
}

const providersSchema = z.looseObject({
  data: z.array(
    z.looseObject({
      id: z.string(),
      name: z.string(),
      description: z.string(),
      status: z.string(),
      model_count: z.int(),
      endpoints: z.array(z.string()),
    }),
  ),
});

/** Returns the concepts of the providers. */
async function providerConcepts({ ask }: ToolContext): Promise<Concept[]> {
  const { data } = providersSchema.parse(await ask({ endpoint: "GET /providers" }));
  return data.map(({ id, name, description, status, model_count: models, endpoints }) => ({
    id: `provider/${id}`,
    type: "provider",
    title: name,
    description,
    facts: { provider: id, status, models, surfaces: endpoints },
    body:
      `${description}\n\nServes ${countText(models, "model")} of the catalog. ` +
      (status === "active"
        ? "All requests are served."
        : "Only callers with a key of their own at this provider are served."),
  }));
}

/**
 * Returns every concept, as the caller may see it. Facts are read from the service's own sources.
 */
export async function conceptsFor(context: ToolContext): Promise<Concept[]> {
  const [models, providers] = await Promise.all([
    modelConcepts(context),
    providerConcepts(context),
  ]);
  return [
    ...models,
    ...providers,
    ...endpointConcepts(context.endpoints),
    ...errorConcepts,
    ...termConcepts,
  ];
}
