import { sessionCookieOf, type SessionCaller } from "../../identity/people/sessions.ts";
import { assertSameOrigin } from "../../access/admit-session.ts";
import { readBodyText } from "../../http/read-body.ts";
import type { RequestContext } from "../../access/define-endpoint.ts";
import { accountBodyBytesMax } from "../account/account-fields.ts";
import type { Dependencies } from "../dependencies.ts";

/** The person whose session the browser carries; undefined where there is no session. */
export function personOf(
  { request }: RequestContext<unknown>,
  { people, clock }: Dependencies,
): Promise<SessionCaller | undefined> {
  const cookie = sessionCookieOf(request.headers.get("cookie"));
  return cookie === undefined
    ? Promise.resolve(undefined)
    : people.reader.find(cookie, clock.nowMs());
}

/**
 * A redirect within this origin. 303 makes a GET of any method before (RFC 9110, section
 * 15.4.4).
 */
export function redirect(
  context: RequestContext<unknown>,
  location: string,
  cookies: readonly string[] = [],
): Response {
  const headers = new Headers({
    ...context.headers,
    location,
    "cache-control": "no-store",
    "referrer-policy": "same-origin",
  });
  for (const cookie of cookies) headers.append("set-cookie", cookie);
  return new Response(null, { status: 303, headers });
}

/** A path with the page to come back to afterwards; `/` needs no mention. */
export const withReturn = (path: string, returnTo: string): string =>
  returnTo === "/"
    ? path
    : `${path}?return_to=${encodeURIComponent(returnTo).replaceAll(/[!'()*~]/g, percentEncoded)}`;

/** What `encodeURIComponent` leaves as it is and the library for signing in takes in no address. */
const percentEncoded = (character: string): string =>
  `%${character.charCodeAt(0).toString(16).toUpperCase()}`;

/** Where a person signs in to come back to a page of this origin. */
export const signInPath = (returnTo: string): string => withReturn("/sign-in", returnTo);

/** The page to come back to that a request or a form names. */
export const returnOf = (parameters: URLSearchParams): string =>
  safeReturn(parameters.get("return_to"));

/** Path and query of a request, to come back to. */
export function placeOf({ request }: RequestContext<unknown>): string {
  const { url } = request;
  const start = url.startsWith("/") ? 0 : url.indexOf("/", url.indexOf("//") + 2);
  return start < 0 ? "/" : url.slice(start);
}

/** The form that a page of ours sent. Throws `forbidden` for forms of other origins (CSRF). */
export async function readForm(
  context: RequestContext<unknown>,
  { publicUrl }: Pick<Dependencies, "publicUrl">,
): Promise<URLSearchParams> {
  assertSameOrigin(context.request, publicUrl());
  return new URLSearchParams(await readBodyText(context.request, accountBodyBytesMax));
}

/**
 * A place within this origin that a `return_to` names; `/` for everything else. A path that begins
 * with two slashes, or a slash and a backslash, is another host's to a browser.
 */
export function safeReturn(returnTo: string | null): string {
  if (returnTo === null || !/^\/(?![/\\])[^\p{Cc}\\]*$/u.test(returnTo) || returnTo.length > 4_000)
    return "/";
  const base = "http://origin.invalid";
  return URL.canParse(returnTo, base) && new URL(returnTo, base).origin === base ? returnTo : "/";
}
