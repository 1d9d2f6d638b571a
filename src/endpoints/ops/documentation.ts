import { z } from "zod";
import { defineEndpoint } from "../../http/endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
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
  handle: (context, { docsHtml }) => new Response(docsHtml(), {
    headers: {
      "content-type": "text/html; charset=utf-8",
      "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
      "x-content-type-options": "nosniff",
      ...context.headers,
    },
  }),
});
