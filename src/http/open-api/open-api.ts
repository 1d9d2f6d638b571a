import { z, type ZodType } from "zod";
import { brand } from "../../platform/kernel/brand.ts";
import type { Endpoint } from "../endpoint.ts";
import {
  errorSchemas,
  headerComponents,
  idempotencyParameter,
  refusingOthers,
  successHeaders,
} from "./open-api-errors.ts";
import { ErrorResponses } from "./error-responses.ts";
import { describeFields, exampleOf, type FieldWords } from "./open-api-fields.ts";
import { isObject, entriesOf } from "../../platform/kernel/json/json-members.ts";

type Json = Record<string, unknown>;

/**
 * Returns a schema with the references to its own definitions replaced by those to the document's
 * components.
 */
function withComponentReferences(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withComponentReferences);
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      key,
      key === "$ref" && typeof inner === "string"
        ? inner.replace("#/$defs/", "#/components/schemas/")
        : withComponentReferences(inner),
    ]),
  );
}

/**
 * Collects the named schemas of a document, each once. Those of requests and answers are kept apart
 * where they differ.
 */
class Schemas {
  readonly named: Record<string, unknown> = {};

  constructor(private readonly words: FieldWords) {}

  /**
   * Returns the JSON schema of a path's zod schema; a reference where it has a name (`meta({ id
   * })`).
   */
  of(schema: ZodType | undefined, io: "input" | "output", owner: string): Json {
    if (schema === undefined) return {};
    const wrapped = z.toJSONSchema(z.object({ wrapped: schema }), { io, unrepresentable: "any" });
    for (const [name, definition] of Object.entries(wrapped.$defs ?? {}))
      this.named[name] ??= this.definition(definition, name);
    const { id: _, ...found } = Object(
      this.described(wrapped.properties?.["wrapped"], owner),
    ) as Json;
    return found;
  }

  /** Returns a value that fits a path's schema. */
  exampleOf(schema: Json, owner: string): unknown {
    return exampleOf(schema, {
      place: { name: "", parent: undefined, owner },
      words: this.words,
      named: this.named,
      depth: 0,
    });
  }

  /** Returns the example of an endpoint's body; undefined where its table has none. */
  bodyExample({ method, path }: Pick<Endpoint<never>, "method" | "path">): unknown {
    return this.words.requests?.[`${method} ${openApiPath(path)}`];
  }

  private described(schema: unknown, owner: string): unknown {
    return describeFields(withComponentReferences(schema), { owner, words: this.words });
  }

  private definition(definition: unknown, name: string): unknown {
    const described = this.described(definition, name);
    if (!isObject(described)) return described;
    const { id: _, $schema: __, ...rest } = described;
    return rest;
  }
}

const openApiPath = (path: string): string => path.replace(/:(\w+)/g, "{$1}");

function parameters(endpoint: Endpoint<never>, schemas: Schemas): Json[] {
  const inPath = [...endpoint.path.matchAll(/:(\w+)/g)].map(([, name]) => ({
    name,
    in: "path",
    required: true,
    schema: { type: "string" },
  }));
  return [
    ...inPath,
    ...membersOf(schemas.of(endpoint.query, "input", endpoint.path), "query"),
    ...membersOf(schemas.of(endpoint.headers, "input", endpoint.path), "header"),
    ...(endpoint.idempotent ? [idempotencyParameter] : []),
  ];
}

function membersOf(
  { properties = {}, required = [] }: { properties?: unknown; required?: unknown },
  place: "query" | "header",
): Json[] {
  const needed = entriesOf(required);
  return Object.entries(Object(properties) as Record<string, Json>).map(
    ([name, { description, ...schema }]) => ({
      name,
      in: place,
      required: needed.includes(name),
      ...(description === undefined ? {} : { description }),
      schema,
    }),
  );
}

/** Examples of bodies that are not JSON, by media type. */
const otherExamples: Readonly<Record<string, string>> = {
  "text/csv": "id,created_at,model,total_cost\r\n",
  "text/markdown": "# Title\n",
  "application/atom+xml": "<feed/>",
  "application/yaml": "providers: []\n",
  "text/html": "<!doctype html>",
  "application/octet-stream": "The bytes of the file.",
  "text/plain": "switchyard_requests_total 42\n",
  "text/javascript": "export {};",
  "image/svg+xml": '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"></svg>',
};

/** Returns a body with an example. */
function jsonContent(schema: ZodType, { schemas, path }: { schemas: Schemas; path: string }): Json {
  const described = schemas.of(schema, "output", openApiPath(path));
  return { schema: described, example: schemas.exampleOf(described, openApiPath(path)) };
}

function otherContent(
  type: string,
  { streamEvents, path }: Endpoint<never>,
  schemas: Schemas,
): Json {
  if (type === "text/event-stream" && streamEvents !== undefined)
    return jsonContent(streamEvents(), { schemas, path });
  if (type === "application/zip" || type === "audio/*")
    return { schema: { type: "string", contentMediaType: type } };
  return { schema: { type: "string" }, example: otherExamples[type] };
}

/** Returns the response of a success. */
function successResponse(
  endpoint: Endpoint<never>,
  {
    description,
    schema,
    schemas,
  }: { description: string; schema: ZodType | undefined; schemas: Schemas },
): Json {
  const { otherResponseTypes = [], path } = endpoint;
  return {
    description,
    headers: successHeaders(endpoint),
    ...(schema === undefined && otherResponseTypes.length === 0
      ? {}
      : {
          content: {
            ...(schema === undefined
              ? {}
              : { "application/json": jsonContent(schema, { schemas, path }) }),
            ...Object.fromEntries(
              otherResponseTypes.map((type) => [type, otherContent(type, endpoint, schemas)]),
            ),
          },
        }),
  };
}

const redirect: Json = {
  description: "The browser is redirected.",
  headers: { Location: { description: "URL of the redirect.", schema: { type: "string" } } },
};

const opened: Json = { description: "The connection is a WebSocket from here on." };

/** Returns the frames of a socket, which OpenAPI has no words of its own for. */
const socketFrames = ({ client, server }: Socket, { schemas, path }: Described): Json => ({
  protocol: "RFC 6455, text frames with one JSON object each",
  client: jsonContent(client(), { schemas, path }),
  server: jsonContent(server(), { schemas, path }),
});

type Socket = NonNullable<Endpoint<never>["socket"]>;
interface Described {
  schemas: Schemas;
  path: string;
}

/** Returns the responses that are not errors, by status. */
function successResponses(endpoint: Endpoint<never>, schemas: Schemas): Json {
  const { accepted, response, bodiesByStatus = {}, redirects, socket } = endpoint;
  const { successStatus = 200, furtherAnswers = {} } = endpoint;
  if (socket !== undefined) return { 101: opened };
  return {
    ...(redirects
      ? { 302: redirect }
      : {
          [successStatus]: successResponse(endpoint, {
            description: "Success.",
            schema: response?.(),
            schemas,
          }),
        }),
    ...(accepted === undefined
      ? {}
      : {
          202: successResponse(endpoint, {
            description: "Accepted; in progress.",
            schema: accepted(),
            schemas,
          }),
        }),
    ...Object.fromEntries(
      Object.entries(bodiesByStatus).map(([status, schema]) => [
        status,
        successResponse(
          { ...endpoint, otherResponseTypes: [] },
          { description: "Not ready.", schema: schema(), schemas },
        ),
      ]),
    ),
    ...Object.fromEntries(
      Object.entries(furtherAnswers).map(([status, description]) => [status, { description }]),
    ),
  };
}

function security({ access }: Endpoint<never>): Json[] {
  const needed: Json[] = [];
  if (access.llmKey) needed.push({ llmKey: [] });
  if (access.managementScope !== undefined || access.anyScope) needed.push({ managementKey: [] });
  if (access.session) needed.push({ session: [] });
  if (access.open || access.anonymous) needed.push({});
  return needed;
}

/** Returns the name of an endpoint's operation: `getModelsId` of `GET /models/{id}`. */
const operationIdOf = ({ method, path }: Pick<Endpoint<never>, "method" | "path">): string =>
  method.toLowerCase() +
  openApiPath(path).replace(/[^a-zA-Z0-9]+(\w?)/g, (_, letter: string) => letter.toUpperCase());

/** Returns a body in each accepted media type. */
const bodyContent = (
  endpoint: Endpoint<never>,
  { body, schemas }: { body: ZodType; schemas: Schemas },
): Json => ({
  [endpoint.rawBodyType ?? "application/json"]: {
    schema: refusingOthers(endpoint, schemas.of(body, "input", openApiPath(endpoint.path))),
    example: schemas.bodyExample(endpoint),
  },
  ...(endpoint.formBody === undefined
    ? {}
    : {
        "multipart/form-data": {
          schema: schemas.of(endpoint.formBody, "input", openApiPath(endpoint.path)),
        },
      }),
});

function operation(
  endpoint: Endpoint<never>,
  { schemas, errors }: { schemas: Schemas; errors: ErrorResponses },
): Json {
  const body = endpoint.rawBody ?? endpoint.body;
  const given = parameters(endpoint, schemas);
  return {
    operationId: operationIdOf(endpoint),
    summary: endpoint.summary,
    ...(endpoint.description === undefined ? {} : { description: endpoint.description }),
    tags: [endpoint.tag],
    ...(endpoint.deprecated === undefined ? {} : { deprecated: true }),
    security: security(endpoint),
    ...(endpoint.access.managementScope === undefined
      ? {}
      : { "x-required-scope": endpoint.access.managementScope }),
    ...(endpoint.socket === undefined
      ? {}
      : { "x-websocket": socketFrames(endpoint.socket, { schemas, path: endpoint.path }) }),
    ...(given.length === 0 ? {} : { parameters: given }),
    ...(body === undefined
      ? {}
      : {
          requestBody: {
            required: !endpoint.bodyOptional,
            content: bodyContent(endpoint, { body, schemas }),
          },
        }),
    responses: { ...successResponses(endpoint, schemas), ...errors.of(endpoint) },
  };
}

/** The purpose of the endpoints of each tag. */
const tagDescriptions: Readonly<Record<string, string>> = {
  Customers: "End customers, with plans that bound what their requests may cost.",
  Teams: "Parts of a workspace with keys, members, models and a limit of their own.",
  Runs: "Budgets of agents' runs, each with a key of its own.",
  Account: "People, organisations, keys, credits and budgets.",
  Admin: "For the operators of the service.",
  BYOK: "The workspace's own provider keys, and donated keys.",
  Catalog: "Models and providers: prices, capabilities, health.",
  Conversations: "Conversations of the playground and of stored responses, private to each person.",
  "Connected apps": "Apps that people connected to a workspace.",
  Batches: "Many requests at once, answered within a day.",
  Files: "Files of the workspace, and uploads in parts.",
  Hub: "Prompts, skills and hubs.",
  Inference: "Requests to models, with LLM keys only.",
  Insights: "Usage, cost and failures.",
  "Key minting": "Ways for apps to obtain keys and tokens.",
  MCP: "Tools of the service for agents.",
  Operations: "Liveness, readiness, metrics and this document.",
  Pages: "Pages for browsers.",
  Payments: "Top-ups, automatic top-ups and invoices.",
  Presets: "Named sets of request settings, and names of models.",
  Security: "Address ranges, privacy, findings and the audit log.",
  "Signing in": "Sessions: passwords, passkeys, second factors and sign-in at providers.",
};

/**
 * Returns the endpoints that the document describes. A path is listed once, so a root page whose
 * path the API has too is left out, and so is what only refuses.
 */
export function describedEndpoints(
  endpoints: readonly Endpoint<never>[],
): readonly Endpoint<never>[] {
  const ofApi = new Set(endpoints.filter(({ base }) => base === "api").map(({ path }) => path));
  return endpoints.filter(
    ({ base, path, refuses }) => refuses !== true && (base === "api" || !ofApi.has(path)),
  );
}

/** Builds the OpenAPI 3.1 document of an endpoint table. */
export function openApiDocument(
  endpoints: readonly Endpoint<never>[],
  { version, publicUrl, words }: { version: string; publicUrl: string; words: FieldWords },
): Json {
  const paths: Record<string, Json> = {};
  const schemas = new Schemas(words);
  const errors = new ErrorResponses();
  for (const endpoint of describedEndpoints(endpoints)) {
    const path = openApiPath(endpoint.path);
    const item = (paths[path] ??=
      endpoint.base === "root" ? { servers: [{ url: publicUrl }] } : {});
    item[endpoint.method.toLowerCase()] = operation(endpoint, { schemas, errors });
  }
  return {
    openapi: "3.1.0",
    info: {
      title: `${brand.productName} API`,
      version,
      description: "One API for many model providers.",
      license: { name: "MIT", identifier: "MIT" },
      contact: { name: `${brand.productName} at ${publicUrl}`, url: publicUrl },
    },
    servers: [{ url: `${publicUrl}/api/v1` }, { url: `${publicUrl}/v1` }],
    tags: [...new Set(endpoints.map(({ tag }) => tag))].map((name) => ({
      name,
      description: tagDescriptions[name] ?? name,
    })),
    paths,
    components: {
      schemas: { ...errorSchemas, ...schemas.named },
      responses: errors.components,
      headers: headerComponents,
      securitySchemes: {
        llmKey: {
          type: "http",
          scheme: "bearer",
          description: `LLM key (prefix ${brand.llmKeyFamilyPrefix}).`,
        },
        session: {
          type: "apiKey",
          in: "cookie",
          name: brand.sessionCookie,
          description: "Session of a signed-in person.",
        },
        managementKey: {
          type: "http",
          scheme: "bearer",
          description: `Management key (prefix ${brand.managementKeyFamilyPrefix}).`,
        },
      },
    },
  };
}
