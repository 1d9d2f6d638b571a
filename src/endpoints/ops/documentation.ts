import { z } from "zod";
import { defineEndpoint, pathsOf, type Endpoint } from "../../http/endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import { docsPage, type DocumentedEndpoint } from "../../pages/docs-page.ts";
import { pageHeaders, pageHtml } from "../../pages/page.ts";
import type { Dependencies } from "../dependencies.ts";

/** The OpenAPI 3.1 document of this API, made from the endpoint table. */
export const openApi = defineEndpoint<Dependencies>({
  method: "GET",
  path: "/openapi.json",
  base: "api",
  access: { open: true },
  counting: "at-door",
  tag: "Operations",
  summary: "Describe this API as OpenAPI 3.1.",
  response: z.looseObject({ openapi: z.string() }),
  encodeError: encodeContractError,
  handle: (context, { openApiText }) =>
    new Response(openApiText(), { headers: { "content-type": "application/json", ...context.headers } }),
});

function credentialText({ access }: Endpoint<never>): string {
  const families = [
    ...(access.llmKey ? ["LLM key"] : []),
    ...(access.managementScope === undefined ? [] : [`management key with ${access.managementScope}`]),
    ...(access.anyScope ? ["management key", "connected app"] : []),
    ...(access.session ? ["session"] : []),
    ...(access.anonymous ? ["none, or an LLM key"] : []),
    ...(access.open ? ["none"] : []),
  ];
  return families.join(" or ");
}

const documented = (endpoint: Endpoint<never>): DocumentedEndpoint => ({
  method: endpoint.method, path: pathsOf(endpoint)[0] ?? "", summary: endpoint.summary, description: endpoint.description,
  credential: credentialText(endpoint),
});

/** The documentation for people, made from a table of endpoints. */
export const docsHtml = (table: readonly Endpoint<never>[], example: { publicUrl: string; exampleModel: string }): string =>
  pageHtml(docsPage(table.map(documented), example));

/** The documentation for people, made from the same table. */
export const docs = defineEndpoint<Dependencies>({
  method: "GET",
  path: "/docs",
  base: "root",
  access: { open: true },
  counting: "at-door",
  tag: "Operations",
  summary: "Show the documentation of this API.",
  otherResponseTypes: ["text/html"],
  encodeError: encodeContractError,
  handle: (context, deps) => new Response(deps.docsHtml(), { headers: { ...context.headers, ...pageHeaders() } }),
});
