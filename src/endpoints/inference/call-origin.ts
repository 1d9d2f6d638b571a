import type { LlmKeyCaller } from "../../account/keys/caller.ts";
import type { RequestContext } from "../../http/request-context.ts";
import { reserveTokens, type TokensUsed } from "../../http/reserve-tokens.ts";
import { maxSessionIdLength } from "../../inference/dialects/check-fields.ts";
import type { CallOrigin } from "../../inference/inference-call.ts";
import { brandHeader } from "../../platform/lib/brand.ts";
import { GatewayError } from "../../platform/lib/errors.ts";
import type { Dependencies } from "../dependencies.ts";
import type { RequestHeaders } from "../../http/http-request.ts";

const balanceHeader = brandHeader("Balance-After-Debit");
const providerHeader = brandHeader("Provider");
const sessionHeader = "x-session-id";

type Body = Readonly<Record<string, unknown>>;

function forcedProviders(headers: RequestHeaders): string[] | undefined {
  const value = headers.get(providerHeader);
  const names = value
    ?.split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");
  return names === undefined || names.length === 0 ? undefined : names;
}

/** The body's session wins over the header's. */
function sessionIdOf(body: Body, headers: RequestHeaders): string | undefined {
  if (typeof body["session_id"] === "string") return body["session_id"];
  const session = headers.get(sessionHeader) ?? undefined;
  if (session !== undefined && session.length > maxSessionIdLength) {
    const message = `${sessionHeader} may have at most ${maxSessionIdLength} characters; send a shorter one.`;
    throw new GatewayError("bad_request", message, { param: sessionHeader });
  }
  return session;
}

/**
 * Where a request comes from, its tokens counted against its key's ceiling. Throws `GatewayError` when
 * the ceiling is reached or the session's id is too long. A promise where processes share that ceiling's window.
 */
export function callOrigin(
  context: RequestContext,
  {
    idPrefix,
    body,
    counters,
    estimateTokens,
  }: {
    idPrefix: string;
    body: Body;
    counters: Dependencies["counters"];
    estimateTokens: () => number;
  },
): CallOrigin | Promise<CallOrigin> {
  const caller = context.caller as LlmKeyCaller;
  const tokensUsed = reserveTokens(counters, { caller, estimateTokens });
  const originWith = (told: TokensUsed | undefined): CallOrigin =>
    originOf(context, { idPrefix, body, caller, tokensUsed: told });
  return tokensUsed instanceof Promise ? tokensUsed.then(originWith) : originWith(tokensUsed);
}

/** Where a request comes from whose tokens are not counted, since no provider is asked. */
export function originOf(
  { request, traceId, startedMs }: RequestContext,
  {
    idPrefix,
    body,
    caller,
    tokensUsed,
  }: { idPrefix: string; body: Body; caller: LlmKeyCaller; tokensUsed?: TokensUsed | undefined },
): CallOrigin {
  const { headers } = request;
  return {
    traceId,
    generationId: `gen_${traceId}`,
    shownId: idPrefix + traceId,
    caller,
    tokensUsed,
    startedMs,
    signalOf: () => request.signal,
    wantsBalance: headers.get(balanceHeader) === "true",
    forcedProviders: forcedProviders(headers),
    sessionId: sessionIdOf(body, headers),
    origin: headers.get("http-referer") ?? headers.get("referer") ?? undefined,
    appTitle: headers.get("x-title") ?? undefined,
    traceParent: headers.get("traceparent") ?? undefined,
  };
}
