import type { AccessRule } from "../http/endpoint.ts";
import type { HttpRequest, RequestHeaders } from "../http/request-context.ts";
import { coversScope } from "../identity/keys/scopes.ts";
import {
  sessionCookieOf,
  workspaceHeader,
  type SessionCaller,
  type SessionReader,
} from "../identity/people/sessions.ts";
import { GatewayError } from "../platform/kernel/errors.ts";
import { RefusedCredentialError } from "./count-request.ts";

/** What admitting sessions needs. */
export interface SessionDoor {
  reader: SessionReader;
  /** Where people reach the service: the origin of its pages. */
  publicUrl(): string;
}

/**
 * The session cookie that decides about a request: one that carries a key is judged by its key
 * alone.
 */
export function decidingCookie(
  headers: RequestHeaders,
  { session }: AccessRule,
): string | undefined {
  if (session === undefined || headers.has("authorization") || headers.has("x-api-key"))
    return undefined;
  return sessionCookieOf(headers.get("cookie"));
}

/**
 * Who a session's cookie belongs to, if that person may use the endpoint; undefined where the
 * session has ended and the endpoint needs no credential. Throws `forbidden`,
 * `authentication_required` or `insufficient_scope`.
 */
export async function admitSession(
  { reader, publicUrl }: SessionDoor,
  {
    request,
    cookie,
    access,
    nowMs,
  }: {
    request: Pick<HttpRequest, "headers" | "method">;
    cookie: string;
    access: AccessRule;
    nowMs: number;
  },
): Promise<SessionCaller | undefined> {
  const caller = await reader.find(
    cookie,
    nowMs,
    request.headers.get(workspaceHeader) ?? undefined,
  );
  if (caller === undefined) {
    // Browsers send their cookie to public endpoints as well.
    if (access.anonymous) return undefined;
    throw new RefusedCredentialError(
      "authentication_required",
      "The session has ended or was revoked. Sign in again.",
    );
  }
  assertSameOrigin(request, publicUrl());
  const { managementScope, operator } = access;
  // The role in the active workspace does not say whether this person is an operator.
  if (managementScope === undefined || operator || coversScope(caller.scopes, managementScope))
    return caller;
  throw new GatewayError(
    "insufficient_scope",
    `As ${caller.role} of this workspace you lack the scope ${managementScope}.`,
    {
      metadata: { required_scope: managementScope, role: caller.role },
    },
  );
}

const safeMethods: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"]);

const foreignRequest = (): GatewayError =>
  new GatewayError(
    "forbidden",
    "This request does not come from a page of this service. Open the service in the browser and send it from there; " +
      "behind a proxy that changes the Host header, set server.public_url to the address in the browser.",
  );

/**
 * Whether an origin is the one that a request came to: the public one, or the one of its `Host`
 * header where the service is reached by another name. A browser sets both headers itself. Under
 * the public name the scheme counts too.
 */
function isOwnOrigin(
  origin: string,
  { host, publicUrl }: { host: string | null; publicUrl: string },
): boolean {
  if (!URL.canParse(origin) || !URL.canParse(publicUrl)) return false;
  const [sent, known] = [new URL(origin), new URL(publicUrl)];
  if (sent.host === known.host) return sent.origin === known.origin;
  return (
    (sent.protocol === "http:" || sent.protocol === "https:") &&
    host !== null &&
    sent.host === host.toLowerCase()
  );
}

/**
 * Whether a browser says that a page of ours sent a request, which no foreign page can make it say;
 * undefined where it is silent.
 */
function saysSameOrigin(headers: RequestHeaders, publicUrl: string): boolean | undefined {
  const site = headers.get("sec-fetch-site");
  if (site === "same-origin") return true;
  // A bookmark or a typed address changes nothing, so `none` does not come with what this guards.
  if (site !== null) return false;
  const origin = headers.get("origin");
  return origin === null
    ? undefined
    : isOwnOrigin(origin, { host: headers.get("host"), publicUrl });
}

/**
 * Refuses what another site makes a browser send (CSRF): by `Sec-Fetch-Site` (Fetch Metadata, W3C)
 * where the browser sends it, else by `Origin` (RFC 6454). A cookie proves a browser, so with one
 * of them there must be a word; programs that send none have no cookie to be abused. Throws
 * `forbidden`.
 */
export function assertSameOrigin(
  { headers, method }: Pick<HttpRequest, "headers" | "method">,
  publicUrl: string,
): void {
  if (safeMethods.has(method)) return;
  const verdict = saysSameOrigin(headers, publicUrl);
  if (verdict === true || (verdict === undefined && !headers.has("cookie"))) return;
  throw foreignRequest();
}
