import { sessionCookieOf } from "../account/people/session-cookie.ts";
import type { SessionCaller } from "../account/people/session-caller.ts";
import { workspaceHeader, type SessionReader } from "../account/people/session-reader.ts";
import { coversScope } from "../account/keys/scopes.ts";
import { GatewayError } from "../platform/lib/errors.ts";
import type { AccessRule } from "./endpoint.ts";
import { RefusedCredentialError } from "./refused-credential.ts";
import { assertSameOrigin } from "./same-origin.ts";
import type { HttpRequest, RequestHeaders } from "./http-request.ts";

/** What admitting sessions needs. */
export interface SessionDoor {
  reader: SessionReader;
  /** Where people reach the service: the origin of its pages. */
  publicUrl(): string;
}

/** The session cookie that decides about a request: one that carries a key is judged by its key alone. */
export function decidingCookie(
  headers: RequestHeaders,
  { session }: AccessRule,
): string | undefined {
  if (session === undefined || headers.has("authorization") || headers.has("x-api-key"))
    return undefined;
  return sessionCookieOf(headers.get("cookie"));
}

/**
 * Who a session's cookie belongs to, if that person may use the endpoint. Throws `forbidden`,
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
): Promise<SessionCaller> {
  const caller = await reader.find(
    cookie,
    nowMs,
    request.headers.get(workspaceHeader) ?? undefined,
  );
  if (caller === undefined) {
    throw new RefusedCredentialError(
      "authentication_required",
      "The session has ended or was revoked. Sign in again.",
    );
  }
  assertSameOrigin(request, publicUrl());
  const { managementScope, operator } = access;
  // What somebody is in the workspace of the moment says nothing of whether they run the service.
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
