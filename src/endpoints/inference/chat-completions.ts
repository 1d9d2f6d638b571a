import { z } from "zod";
import type { LlmKeyCaller } from "../../account/keys/caller.ts";
import { countRequest } from "../../http/count-request.ts";
import { defineEndpoint } from "../../http/endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import { parseJsonObject, readBodyText } from "../../http/read-body.ts";
import { reserveTokens } from "../../http/reserve-tokens.ts";
import type { RequestContext } from "../../http/request-context.ts";
import { eventStreamHeaders, frameStream } from "../../http/sse-response.ts";
import type { ChatCall } from "../../inference/chat-call.ts";
import { wholeAnswerText } from "../../inference/chat-whole.ts";
import { chatRequestSchema } from "../../inference/dialects/openai-chat/request-schema.ts";
import { maxSessionIdLength, validateChatEnvelope } from "../../inference/dialects/openai-chat/validate-envelope.ts";
import { execute } from "../../inference/execute.ts";
import { estimateInputTokens } from "../../inference/input-estimate.ts";
import type { ServedWhole } from "../../inference/execution.ts";
import { brandHeader } from "../../platform/lib/brand.ts";
import { GatewayError } from "../../platform/lib/errors.ts";
import type { Dependencies } from "../dependencies.ts";
import { rateClassOf } from "./rate-class.ts";
import { addSettledHeaders, servedHeaders } from "./served-headers.ts";

/** Larger bodies are refused with 413: above what any provider takes, below what hurts. */
export const inferenceBodyBytesMax = 32 * 1024 * 1024;

const balanceHeader = brandHeader("Balance-After-Debit");
const providerHeader = brandHeader("Provider");
const sessionHeader = "x-session-id";

function forcedProviders(headers: Headers): string[] | undefined {
  const value = headers.get(providerHeader);
  const names = value?.split(",").map((name) => name.trim()).filter((name) => name !== "");
  return names === undefined || names.length === 0 ? undefined : names;
}

/** The body's session wins over the header's. */
function sessionIdOf(body: Readonly<Record<string, unknown>>, headers: Headers): string | undefined {
  if (typeof body["session_id"] === "string") return body["session_id"];
  const session = headers.get(sessionHeader) ?? undefined;
  if (session !== undefined && session.length > maxSessionIdLength) {
    const message = `${sessionHeader} may have at most ${maxSessionIdLength} characters; send a shorter one.`;
    throw new GatewayError("bad_request", message, { param: sessionHeader });
  }
  return session;
}

async function readCall(context: RequestContext, counters: Dependencies["counters"]): Promise<ChatCall> {
  const { request } = context;
  const caller = context.caller as LlmKeyCaller;
  const text = await readBodyText(request, inferenceBodyBytesMax);
  const body = parseJsonObject(text);
  countRequest(counters, { caller, rateClass: rateClassOf(body["model"]), headers: context.headers });
  validateChatEnvelope(body);
  const { headers } = request;
  const tokensUsed = reserveTokens(counters, { key: caller.key, estimateTokens: () => estimateInputTokens(text, body) });
  return {
    traceId: context.traceId,
    generationId: `gen_${context.traceId}`,
    caller,
    tokensUsed,
    startedMs: context.startedMs,
    signalOf: () => request.signal,
    text,
    body,
    wantsBalance: headers.get(balanceHeader) === "true",
    forcedProviders: forcedProviders(headers),
    sessionId: sessionIdOf(body, headers),
    origin: headers.get("http-referer") ?? headers.get("referer") ?? undefined,
    appTitle: headers.get("x-title") ?? undefined,
    traceParent: headers.get("traceparent") ?? undefined,
  };
}

function wholeResponse(context: RequestContext, { served, call }: { served: ServedWhole; call: ChatCall }): Response {
  const text = wholeAnswerText(served.answer, {
    id: `chatcmpl-${call.traceId}`, model: served.candidate.model.id, metered: served.metered,
    chargedNano: served.settled.chargedNano, fallback: served.fallback,
  });
  const headers = servedHeaders(served, {
    gathered: context.headers, endMs: served.settled.settledMs, upstreamEndMs: served.timing.upstreamEndMs,
  });
  headers.set("content-type", "application/json");
  if (call.wantsBalance) addSettledHeaders(headers, served.settled);
  return new Response(text, { headers });
}

/** Chat in OpenAI's dialect, whole or streamed, on any model of the catalog. */
export const chatCompletions = defineEndpoint<Dependencies>({
  method: "POST",
  path: "/chat/completions",
  base: "api",
  access: { llmKey: true },
  counting: "by-handler",
  bodyBytesMax: inferenceBodyBytesMax,
  summary: "Create a chat completion, whole or streamed.",
  description: "OpenAI's chat dialect with routing preferences in `provider`, fallback models in `models`, and the charge in `usage.cost`.",
  tag: "Inference",
  rawBody: chatRequestSchema,
  response: z.looseObject({
    id: z.string(), object: z.literal("chat.completion"), created: z.int(), model: z.string(),
    choices: z.array(z.looseObject({ index: z.int(), finish_reason: z.string().nullable() })),
    usage: z.looseObject({ prompt_tokens: z.int(), completion_tokens: z.int(), total_tokens: z.int(), cost: z.number() }),
  }),
  encodeError: encodeContractError,
  async handle(context, { inference, counters, clock }) {
    const call = await readCall(context, counters);
    const served = await execute(inference, call);
    if (served.kind === "whole") return wholeResponse(context, { served, call });
    const nowMs = clock.monotonicMs();
    const gathered = { ...eventStreamHeaders, ...context.headers };
    return new Response(frameStream(served.stream), { headers: servedHeaders(served, { gathered, endMs: nowMs, upstreamEndMs: nowMs }) });
  },
});
