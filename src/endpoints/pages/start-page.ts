import { defineEndpoint } from "../../http/endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import { faviconSvg } from "../../pages/mark.ts";
import { messagePage } from "../../pages/message-page.ts";
import { brand } from "../../platform/lib/brand.ts";
import type { Dependencies } from "../dependencies.ts";
import { pageResponse } from "./page-response.ts";

const shared = { base: "root", access: { open: true }, tag: "Pages", encodeError: encodeContractError } as const;

/** Shows what this service is, and how to go on. */
export const startPage = defineEndpoint<Dependencies>({
  ...shared,
  method: "GET",
  path: "/",
  counting: "at-door",
  summary: "Show what this service is.",
  otherResponseTypes: ["text/html"],
  handle: (context, { publicUrl }) =>
    pageResponse(
      context,
      messagePage({
        title: brand.productName,
        sentences: [
          "One API in front of many model providers, with keys, budgets and usage for teams.",
          `Point an OpenAI or Anthropic SDK at ${publicUrl()}/api/v1 and send a key of this service.`,
        ],
        links: [{ href: "/docs", label: "Read the documentation" }],
      }),
    ),
});

/** The mark that browsers show in tabs. */
export const favicon = defineEndpoint<Dependencies>({
  ...shared,
  method: "GET",
  path: "/favicon.svg",
  counting: "none",
  summary: "Show the mark of the service.",
  handle: (context) =>
    new Response(faviconSvg, {
      headers: {
        ...context.headers,
        "content-type": "image/svg+xml",
        "cache-control": "public, max-age=86400",
        "x-content-type-options": "nosniff",
      },
    }),
});
