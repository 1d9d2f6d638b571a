import { z } from "zod";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import { pathOf } from "../../http/request-context.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import type { Dependencies } from "../dependencies.ts";
import { personOf, redirect } from "../pages/page-response.ts";

const shared = {
  method: "GET",
  access: { open: true },
  tag: "Operations",
  encodeError: encodeContractError,
} as const;

/** Returns the OpenAPI 3.1 document of this API, built from the endpoint table. */
export const openApi = defineEndpoint({
  ...shared,
  path: "/openapi.json",
  base: "api",
  counting: "at-door",
  summary: "Show this API as an OpenAPI 3.1 document.",
  response: () => z.looseObject({ openapi: z.string() }),
  handle: async (context, { openApiText }: Pick<Dependencies, "openApiText">) =>
    new Response(await openApiText(), {
      headers: { "content-type": "application/json", ...context.headers },
    }),
});

/** Allows no inline script or style, and nothing of another origin. */
const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; " +
  "frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

type SiteDependencies = Pick<Dependencies, "documentation" | "people" | "clock">;

const siteHeaders = (type: string): Record<string, string> => ({
  "content-type": type,
  "content-security-policy": policy,
  "cache-control": "no-cache",
  "x-content-type-options": "nosniff",
  "referrer-policy": "same-origin",
});

const isBrowser = ({ request }: RequestContext<unknown>): boolean =>
  request.headers.get("accept")?.includes("text/html") ?? false;

/** Returns the page that a browser sees at an unknown address, with the navigation of the others. */
async function missingResponse(
  context: RequestContext<unknown>,
  { documentation }: Pick<SiteDependencies, "documentation">,
  path: string,
): Promise<Response> {
  const { text, type } = (await documentation()).missing(path);
  return new Response(text, {
    status: 404,
    headers: { ...context.headers, ...siteHeaders(type) },
  });
}

/** Matches paths below those of pages. */
const deeperPath = /^\/docs\/([^/]+\/[^/]+\/[^/].*)$/;

/**
 * Returns the page for a browser that opens an address deeper than any page of the documentation;
 * undefined for everything else.
 */
export function missingBelowPages(
  context: RequestContext,
  deps: Pick<SiteDependencies, "documentation">,
): Promise<Response> | undefined {
  const { method } = context.request;
  if ((method !== "GET" && method !== "HEAD") || !isBrowser(context)) return undefined;
  const path = deeperPath.exec(pathOf(context.request))?.[1];
  return path === undefined ? undefined : missingResponse(context, deps, path);
}

async function siteResponse(
  context: RequestContext<unknown>,
  deps: SiteDependencies,
  path: string,
): Promise<Response> {
  const site = await deps.documentation();
  const file = site.file(path);
  if (file === undefined) {
    if (isBrowser(context)) return missingResponse(context, deps, path);
    throw new GatewayError(
      "not_found",
      "The documentation has no such page. The list is at /docs.",
    );
  }
  // The page of an operation offers to send it only where a person is signed in.
  const isSignedIn = site.operations.has(path) && (await personOf(context, deps)) !== undefined;
  const text = isSignedIn ? file.text.replace("<body", "<body data-signed-in") : file.text;
  return new Response(text, { headers: { ...context.headers, ...siteHeaders(file.type) } });
}

const site = {
  ...shared,
  base: "root",
  counting: "at-door",
  otherResponseTypes: ["text/html", "text/markdown", "text/plain"],
} as const;

export const docs = defineEndpoint({
  ...site,
  path: "/docs",
  summary: "Show the documentation.",
  handle: (context, deps: SiteDependencies) => siteResponse(context, deps, ""),
});

/**
 * Returns a file of the documentation: `llms.txt`, `llms-full.txt` or `search.json`. Redirects from
 * a section, such as `/docs/guides`, to its first page.
 */
export const docsFile = defineEndpoint({
  ...site,
  path: "/docs/:file",
  summary: "Show llms.txt, llms-full.txt or the search index.",
  async handle(context, deps: SiteDependencies) {
    const name = context.param("file");
    if (name === "api") return redirect(context, "/docs/reference/api-inference");
    const section = (await deps.documentation()).sections.find(({ slug }) => slug === name);
    const first = section?.pages[0];
    return first === undefined
      ? siteResponse(context, deps, name)
      : redirect(context, `/docs/${name}/${first.slug}`);
  },
});

export const docsPage = defineEndpoint({
  ...site,
  path: "/docs/:section/:page",
  summary: "Show a page of the documentation, or its Markdown.",
  handle: (context, deps: SiteDependencies) =>
    siteResponse(context, deps, `${context.param("section")}/${context.param("page")}`),
});

/** Serves `llms.txt` where agents look for the documentation (llmstxt.org). */
export const llmsText = defineEndpoint({
  ...site,
  path: "/llms.txt",
  summary: "Show the documentation's index for agents.",
  handle: (context, deps: SiteDependencies) => siteResponse(context, deps, "llms.txt"),
});
