import { z, type ZodType } from "zod";
import { brand } from "../platform/lib/brand.ts";
import { errorCatalog } from "../platform/lib/errors.ts";
import type { Endpoint } from "./endpoint.ts";

type Json = Record<string, unknown>;

function jsonSchema(schema: ZodType | undefined, io: "input" | "output"): Json {
  if (schema === undefined) return {};
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: "any" }) as Json;
  return rest;
}

const openApiPath = (path: string): string => path.replace(/:(\w+)/g, "{$1}");

function parameters(endpoint: Endpoint<never>): Json[] {
  const inPath = [...endpoint.path.matchAll(/:(\w+)/g)].map(([, name]) => ({
    name, in: "path", required: true, schema: { type: "string" },
  }));
  return [...inPath, ...membersOf(endpoint.query, "query"), ...membersOf(endpoint.headers, "header")];
}

function membersOf(from: ZodType | undefined, place: "query" | "header"): Json[] {
  const { properties = {}, required = [] } = jsonSchema(from, "input") as { properties?: Record<string, Json>; required?: string[] };
  return Object.entries(properties).map(([name, schema]) => ({ name, in: place, required: required.includes(name), schema }));
}

/** An answer that is no error. */
function successResponse(
  { answerHeaders, otherResponseTypes = [] }: Endpoint<never>, { description, schema }: { description: string; schema: ZodType | undefined },
): Json {
  const headers = Object.entries(answerHeaders ?? {}).map(([name, says]) => [name, { description: says, schema: { type: "string" } }]);
  return {
    description,
    ...(headers.length === 0 ? {} : { headers: Object.fromEntries(headers) as Json }),
    ...(schema === undefined && otherResponseTypes.length === 0 ? {} : { content: {
      ...(schema === undefined ? {} : { "application/json": { schema: jsonSchema(schema, "output") } }),
      ...Object.fromEntries(otherResponseTypes.map((type) => [type, { schema: { type: "string" } }])),
    } }),
  };
}

function security({ access }: Endpoint<never>): Json[] {
  const needed: Json[] = [];
  if (access.llmKey) needed.push({ llmKey: [] });
  if (access.managementScope !== undefined) needed.push({ managementKey: [] });
  if (access.session) needed.push({ session: [] });
  if (access.open || access.anonymous) needed.push({});
  return needed;
}

const errorResponse = { description: "Refused or failed; `error.code` says why.", content: { "application/json": { schema: { $ref: "#/components/schemas/Error" } } } };

/** A body in each form that it is taken in. */
const bodyContent = ({ rawBodyType, formBody }: Endpoint<never>, body: ZodType): Json => ({
  [rawBodyType ?? "application/json"]: { schema: jsonSchema(body, "input") },
  ...(formBody === undefined ? {} : { "multipart/form-data": { schema: jsonSchema(formBody, "input") } }),
});

function operation(endpoint: Endpoint<never>): Json {
  const body = endpoint.rawBody ?? endpoint.body;
  const given = parameters(endpoint);
  return {
    operationId: `${endpoint.method.toLowerCase()}${openApiPath(endpoint.path).replace(/[^a-zA-Z0-9]+(\w?)/g, (_, letter: string) => letter.toUpperCase())}`,
    summary: endpoint.summary,
    ...(endpoint.description === undefined ? {} : { description: endpoint.description }),
    tags: [endpoint.tag],
    ...(endpoint.deprecated === undefined ? {} : { deprecated: true }),
    security: security(endpoint),
    ...(endpoint.access.managementScope === undefined ? {} : { "x-required-scope": endpoint.access.managementScope }),
    ...(given.length === 0 ? {} : { parameters: given }),
    ...(body === undefined ? {} : { requestBody: { required: !endpoint.bodyOptional, content: bodyContent(endpoint, body) } }),
    responses: {
      200: successResponse(endpoint, { description: "Success.", schema: endpoint.response }),
      ...(endpoint.accepted === undefined ? {} : {
        202: successResponse(endpoint, { description: "Under way.", schema: endpoint.accepted }),
      }),
      default: errorResponse,
    },
  };
}

const errorSchema: Json = {
  type: "object",
  required: ["error"],
  properties: {
    error: {
      type: "object",
      required: ["code", "message", "type", "metadata"],
      properties: {
        code: { type: "string", enum: Object.keys(errorCatalog) },
        message: { type: "string" },
        type: { type: "string" },
        param: { type: ["string", "null"] },
        metadata: { type: "object" },
      },
    },
  },
};

/** The OpenAPI 3.1 document of an endpoint table. */
export function openApiDocument(endpoints: readonly Endpoint<never>[], { version, publicUrl }: { version: string; publicUrl: string }): Json {
  const paths: Record<string, Json> = {};
  for (const endpoint of endpoints) {
    const path = openApiPath(endpoint.base === "api" ? endpoint.path : endpoint.path);
    const item = (paths[path] ??= endpoint.base === "root" ? { servers: [{ url: publicUrl }] } : {});
    item[endpoint.method.toLowerCase()] = operation(endpoint);
  }
  return {
    openapi: "3.1.0",
    info: { title: `${brand.productName} API`, version, description: "One API in front of many model providers." },
    servers: [{ url: `${publicUrl}/api/v1` }, { url: `${publicUrl}/v1` }],
    paths,
    components: {
      schemas: { Error: errorSchema },
      securitySchemes: {
        llmKey: { type: "http", scheme: "bearer", description: `LLM key (prefix ${brand.llmKeyFamilyPrefix}).` },
        session: { type: "apiKey", in: "cookie", name: brand.sessionCookie, description: "Session of somebody who signed in." },
        managementKey: { type: "http", scheme: "bearer", description: `Management key (prefix ${brand.managementKeyFamilyPrefix}).` },
      },
    },
  };
}
