import type { AccessRule } from "../http/endpoint.ts";
import type { HttpRequest, RequestHeaders } from "../http/served-request.ts";
import { coversScope } from "../identity/keys/scopes.ts";
import {
  sessionCookieOf,
  workspaceHeader,
  type SessionCaller,
} from "../identity/people/sign-in/sessions.ts";
import type { SessionReader } from "../identity/people/sign-in/session-reader.ts";
import { GatewayError } from "../platform/kernel/errors.ts";
import { RefusedCredentialError } from "./count-request.ts";

/** The dependencies of admitting sessions. */
export interface SessionDoor {
  reader: SessionReader;
  /** Returns the origin at which people reach the service's pages. */
  publicUrl(): string;
}

/**
 * Returns the session cookie that decides about a request. A request that carries a key is judged
 * by its key alone.
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
 * Returns the caller that a session's cookie belongs to, if that person may use the endpoint;
 * undefined where the session has ended and the endpoint needs no credential. Throws `forbidden`,
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
  // Operators may do everything, regardless of their role in the active workspace.
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
 * Returns whether an origin is the one that the request was sent to: the public one, or that of its
 * `Host` header where the service is reached by another name. A browser sets both headers itself.
 * Under the public name, the scheme must match too.
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
 * Returns whether a browser says that a page of this service sent the request, which no other
 * site's page can make it say; undefined where it says nothing.
 */
function saysSameOrigin(headers: RequestHeaders, publicUrl: string): boolean | undefined {
  const site = headers.get("sec-fetch-site");
  if (site === "same-origin") return true;
  // `none` means a bookmark or a typed address. Neither sends a request that changes something, so
  // it is refused here.
  if (site !== null) return false;
  const origin = headers.get("origin");
  return origin === null
    ? undefined
    : isOwnOrigin(origin, { host: headers.get("host"), publicUrl });
}

/**
 * Refuses requests that another site makes a browser send (CSRF): by `Sec-Fetch-Site` (Fetch
 * Metadata, W3C) where the browser sends it, or else by `Origin` (RFC 6454). A cookie is sent by a
 * browser, so one of the two must be present; programs that send neither have no cookie to abuse.
 * Throws `forbidden`.
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
