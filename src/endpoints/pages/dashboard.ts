import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import { pathOf } from "../../http/request-context.ts";
import { messagePage } from "../../pages/message-page.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import type { Dependencies } from "../dependencies.ts";
import { asksForPage } from "./error-page.ts";
import { pageResponse, placeOf, redirect } from "./page-response.ts";

const shared = {
  base: "root",
  method: "GET",
  access: { open: true },
  counting: "none",
  tag: "Pages",
  encodeError: encodeContractError,
} as const;

/** Allows no inline script or style, and nothing of another origin. */
const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src data:; font-src 'self'; " +
  "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

const indexHeaders = {
  "content-type": "text/html; charset=utf-8",
  "content-security-policy": policy,
  "cache-control": "no-cache",
  "referrer-policy": "same-origin",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "cross-origin-opener-policy": "same-origin",
} as const;

/**
 * Returns the dashboard's page; while it is being built, a page that reloads itself, and 404 where
 * the dashboard is off.
 */
function dashboardResponse(
  context: RequestContext<unknown>,
  { dashboard }: Pick<Dependencies, "dashboard">,
): Response {
  if (!dashboard.isOn)
    throw new GatewayError("not_found", "The dashboard is turned off here (dashboard: false).");
  const index = dashboard.index();
  if (index !== undefined)
    return new Response(index, { headers: { ...context.headers, ...indexHeaders } });
  const waiting = pageResponse(
    context,
    messagePage({
      title: "The dashboard is being built",
      sentences: ["This takes a second after the first start. The page loads itself again."],
    }),
    { status: 503 },
  );
  waiting.headers.set("refresh", "1");
  waiting.headers.set("retry-after", "1");
  return waiting;
}

/** Paths below `/dashboard` that the dashboard's own router handles. */
const clientPaths = [
  "",
  "/playground",
  "/activity",
  "/usage",
  "/models",
  "/models/:owner/:model",
  "/keys",
  "/connections",
  "/credits",
  "/members",
  "/account",
  "/presets",
  "/presets/:slug",
  "/aliases",
  "/provider-keys",
  "/mcp-servers",
  "/routing",
  "/budgets",
  "/batches",
  "/batches/:id",
  "/files",
  "/runs",
  "/runs/:id",
  "/customers",
  "/customers/:id",
  "/teams",
  "/teams/:id",
  "/security",
  "/hub",
  "/operator",
] as const;

/** The pages of the dashboard. */
export const dashboardPages = clientPaths.map((path) =>
  defineEndpoint({
    ...shared,
    path: `/dashboard${path}`,
    summary: `Show the dashboard's page ${path || "/"}.`,
    otherResponseTypes: ["text/html"],
    handle: (context, deps: Pick<Dependencies, "dashboard">) => dashboardResponse(context, deps),
  }),
);

const namedPaths = clientPaths
  .filter((path) => path !== "")
  .map((path) => path.replaceAll(/:\w+/g, "[^/]+"));
const screenPattern = new RegExp(`^(?:${namedPaths.join("|")})/?$`);

/**
 * Redirects a browser from a screen's path at the root, such as `/activity?status=failed`, to the
 * screen; undefined for everything else. Programs get the usual answer for a path that no endpoint
 * has.
 */
export function screenAtRoot(
  context: RequestContext,
  { dashboard }: Pick<Dependencies, "dashboard">,
): Response | undefined {
  const { request } = context;
  if (
    !dashboard.isOn ||
    !asksForPage(context) ||
    (request.method !== "GET" && request.method !== "HEAD")
  )
    return undefined;
  const path = pathOf(request);
  const query = placeOf(context).slice(path.length);
  if (path === "/overview" || path === "/dashboard/")
    return redirect(context, `/dashboard${query}`);
  return screenPattern.test(path)
    ? redirect(context, `/dashboard${path.replace(/\/$/, "")}${query}`)
    : undefined;
}

const takesGzip = ({ request }: RequestContext<unknown>): boolean =>
  /\bgzip\b/.test(request.headers.get("accept-encoding") ?? "");

function fileResponse(
  context: RequestContext<unknown>,
  { dashboard }: Pick<Dependencies, "dashboard">,
  name: string,
): Response {
  const file = dashboard.file(name);
  if (file === undefined)
    throw new GatewayError("not_found", "There is no such file. Reload the page.");
  const gzipped = takesGzip(context) ? file.gzipped : undefined;
  // File names contain a hash of their content, except for the theme's script and the fonts, which
  // change with releases.
  const cached = /-[0-9a-z]{8}\.\w+$/.test(name)
    ? "public, max-age=31536000, immutable"
    : "public, max-age=3600";
  return new Response(gzipped ?? file.bytes, {
    headers: {
      ...context.headers,
      "content-type": file.type,
      "cache-control": cached,
      vary: "accept-encoding",
      "x-content-type-options": "nosniff",
      ...(gzipped === undefined ? {} : { "content-encoding": "gzip" }),
    },
  });
}

export const dashboardAsset = defineEndpoint({
  ...shared,
  path: "/assets/:file",
  summary: "Show a script or style sheet of the dashboard.",
  otherResponseTypes: ["text/html"],
  handle: (context, deps: Pick<Dependencies, "dashboard">) =>
    fileResponse(context, deps, `assets/${context.param("file")}`),
});

export const dashboardFont = defineEndpoint({
  ...shared,
  path: "/fonts/:file",
  summary: "Show a font of the dashboard.",
  otherResponseTypes: ["text/html"],
  handle: (context, deps: Pick<Dependencies, "dashboard">) =>
    fileResponse(context, deps, `fonts/${context.param("file")}`),
});
