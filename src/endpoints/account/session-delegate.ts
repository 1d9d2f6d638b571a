import { z } from "zod";
import { clientAddressHeader, identityPath } from "../../account/people/identity.ts";
import type { RequestContext } from "../../http/request-context.ts";
import { Reply } from "../../http/reply.ts";
import { queryOf } from "../../http/request-target.ts";
import { assertSameOrigin } from "../../http/same-origin.ts";
import { brand } from "../../platform/lib/brand.ts";
import { GatewayError, type ErrorCode } from "../../platform/lib/errors.ts";
import type { Dependencies } from "../dependencies.ts";

/** What a route asks of the library for sign-in. */
export interface Delegated {
  method: "GET" | "POST";
  /** Below `identityPath`. */
  path: string;
  body?: Readonly<Record<string, unknown>>;
  /** The library is not told of a session that the browser has: it is to begin one. */
  withoutSession?: boolean;
}

/** What the library answered: its cookies, where it sends the browser, and its JSON. */
export interface DelegatedAnswer {
  status: number;
  cookies: readonly string[];
  location: string | null;
  body: unknown;
}

const passedOn = [
  "cookie",
  "user-agent",
  "accept-language",
  "sec-fetch-site",
  "sec-fetch-mode",
  "sec-fetch-dest",
] as const;

const codes: Readonly<Partial<Record<number, ErrorCode>>> = {
  400: "bad_request",
  401: "authentication_required",
  403: "forbidden",
  404: "not_found",
  409: "conflict",
  415: "bad_request",
  422: "unprocessable_entity",
  429: "rate_limit_exceeded",
};

const refusalSchema = z
  .object({ message: z.string().optional(), code: z.string().optional() })
  .catch({});

/** Asks the library as the browser would have. Throws `GatewayError` where the library refuses, and for pages of others. */
export async function delegate(
  context: RequestContext<unknown>,
  { people: { identity }, publicUrl }: Dependencies,
  { method, path, body, withoutSession = false }: Delegated,
): Promise<DelegatedAnswer> {
  const { request } = context;
  assertSameOrigin(request, publicUrl());
  const query = method === "GET" ? queryOf(request).toString() : "";
  const answer = await identity.handle(
    new Request(`${publicUrl()}${identityPath}${path}${query === "" ? "" : `?${query}`}`, {
      method,
      headers: headersFor(context, publicUrl(), withoutSession),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    }),
  );
  const text = await answer.text();
  const parsed: unknown =
    answer.headers.get("content-type")?.startsWith("application/json") && text !== ""
      ? JSON.parse(text)
      : null;
  if (answer.status >= 400) throw refusalOf(answer.status, parsed);
  return {
    status: answer.status,
    cookies: answer.headers.getSetCookie(),
    location: answer.headers.get("location"),
    body: parsed,
  };
}

const withoutSessionCookie = (cookies: string): string =>
  cookies
    .split(/;\s*/)
    .filter((pair) => !pair.startsWith(`${brand.sessionCookie}=`))
    .join("; ");

/** The origin was judged at the door, so the library is told ours; the address is the one that this gateway saw. */
function headersFor(
  context: RequestContext<unknown>,
  publicUrl: string,
  withoutSession: boolean,
): Headers {
  const headers = new Headers({
    "content-type": "application/json",
    origin: new URL(publicUrl).origin,
  });
  for (const name of passedOn) {
    const value = context.request.headers.get(name);
    if (value !== null)
      headers.set(name, name === "cookie" && withoutSession ? withoutSessionCookie(value) : value);
  }
  headers.set(clientAddressHeader, context.clientAddress());
  return headers;
}

function refusalOf(status: number, body: unknown): GatewayError {
  const { message, code } = refusalSchema.parse(body);
  // 2026-11: the library answers 500 to credentials of a browser that do not hold.
  const known = code === "FAILED_TO_VERIFY_REGISTRATION" ? "bad_request" : codes[status];
  if (known === undefined) {
    return new GatewayError(
      "internal_server_error",
      "Signing in failed on our side. Quote the trace id when you report it.",
    );
  }
  const metadata = code === undefined ? {} : { reason: code.toLowerCase() };
  return new GatewayError(known, message ?? "Signing in was refused.", { metadata });
}

/** An answer to the browser with what the library set; of secrets it has the cookie alone. */
export function answerWith(
  context: RequestContext<unknown>,
  { cookies, location, status }: DelegatedAnswer,
  body: unknown,
): Reply {
  const redirects = location !== null && status >= 300;
  if (redirects)
    return new Reply("", { status, headers: { ...context.headers, location }, cookies });
  const headers = {
    "content-type": "application/json",
    ...context.headers,
    "cache-control": "no-store",
  };
  return new Reply(JSON.stringify(body), { headers, cookies });
}
