import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import { html } from "hono/html";
import { pathOf } from "../../http/request-context.ts";
import { facts, messagePage } from "../../pages/message-page.ts";
import type { GatewayError } from "../../platform/kernel/errors.ts";
import { pageResponse, pageRoute, placeOf, signInPath } from "./page-response.ts";

/**
 * Returns whether a person sees the answer: a browser that opens a page prefers HTML and sends no
 * key.
 */
export function asksForPage({ request: { headers } }: RequestContext<unknown>): boolean {
  if (headers.has("authorization") || headers.has("x-api-key")) return false;
  const accept = headers.get("accept") ?? "";
  const [html, json] = [accept.indexOf("text/html"), accept.indexOf("application/json")];
  return html >= 0 && (json < 0 || html < json);
}

const titles: Readonly<Partial<Record<number, string>>> = {
  400: "This request cannot be understood",
  401: "Sign in to see this page",
  403: "This was refused",
  404: "There is no such page",
  405: "This page does not accept this request",
  413: "This is too large",
  429: "Too many requests",
  500: "Something failed in the service",
  501: "This is not set up here",
  503: "The service is busy",
};

const isApi = (path: string): boolean => /^\/(?:api\/)?v1(?:\/|$)/.test(path);

/**
 * Returns what happened and what to do. Messages for programs are replaced where they name methods
 * and endpoints.
 */
function sentencesOf({ status, message }: GatewayError, path: string): string[] {
  if (status === 404 && !isApi(path))
    return [`There is nothing at ${path}. Check the address, or go to the start page.`];
  if (status === 405 && !isApi(path))
    return ["This address only accepts a submitted form. Go to the start page, and start there."];
  if (status === 500)
    return [
      "The request could not be answered. Try again; if it fails again, report the trace id below.",
    ];
  return [message];
}

/**
 * Returns whether a browser says that it opens a page. It leaves out the first header where the
 * gateway has neither https nor a local address (W3C, Fetch Metadata), and not the second one.
 */
const opensPage = ({ headers }: RequestContext<unknown>["request"]): boolean =>
  headers.get("sec-fetch-mode") === "navigate" || headers.get("upgrade-insecure-requests") === "1";

/**
 * Returns an error as a page for a person's browser; undefined for programs. Some of these accept
 * HTML before all else too, such as Java's client, so that on a path of the API the browser has to
 * say that it opens a page.
 */
export function errorPage(
  error: GatewayError,
  {
    context,
    headers,
  }: { context: RequestContext<unknown>; headers: Readonly<Record<string, string>> },
): Response | undefined {
  const { request, traceId } = context;
  if (!asksForPage(context) || (isApi(pathOf(request)) && !opensPage(request))) return undefined;
  const { status } = error;
  const back = request.method === "GET" ? placeOf(context) : "/";
  return pageResponse(
    context,
    messagePage({
      title: titles[status] ?? "This did not work",
      sentences: sentencesOf(error, pathOf(request)),
      more: facts([
        ["Status", String(status)],
        ["Trace id", html`<code>${traceId}</code>`],
      ]),
      links:
        status === 401
          ? [{ href: signInPath(back), label: "Sign in" }]
          : [
              {
                href: "/",
                label: "Go to the start page",
                ...(status === 404 ? {} : { plain: true }),
              },
            ],
    }),
    { status, headers: { ...headers, vary: "accept" } },
  );
}

/** Shows the page for a sign-in that failed at a provider before it was known who asked. */
export const signInFailedPage = defineEndpoint({
  ...pageRoute,
  method: "GET",
  path: "/api/auth/error",
  summary: "Show why sign-in at a provider failed.",
  handle(context) {
    const { query } = context;
    const reason =
      query.get("error_description") ?? query.get("error") ?? "The reason is not known.";
    return pageResponse(
      context,
      messagePage({
        title: "Signing in failed",
        problem: reason.slice(0, 300),
        sentences: ["The provider or this service refused. Try again, or sign in another way."],
        links: [{ href: "/sign-in", label: "Sign in" }],
      }),
      { status: 400 },
    );
  },
});
