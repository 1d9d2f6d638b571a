import type { LlmKeyCaller } from "../../src/identity/keys/caller.ts";
import { noPrivacy, type Privacy } from "../../src/identity/workspaces/privacy.ts";
import { chatCall } from "../../src/inference/pipeline/chat-call.ts";
import type { ChatCall } from "../../src/inference/pipeline/inference-call.ts";
import { CallSignatures } from "../../src/inference/pipeline/stream/call-signatures.ts";
import type { CatalogSnapshot } from "../../src/inference/catalog/model.ts";
import { anthropicMessages } from "../../src/inference/dialects/anthropic-messages/index.ts";
import { checkMessagesRequest } from "../../src/inference/dialects/anthropic-messages/request-schema.ts";
import { openaiChat } from "../../src/inference/dialects/openai-chat/index.ts";
import { checkChatRequest } from "../../src/inference/dialects/openai-chat/request-schema.ts";
import { openaiResponses } from "../../src/inference/dialects/openai-responses/index.ts";
import { checkResponsesRequest } from "../../src/inference/dialects/openai-responses/request-schema.ts";
import {
  trailOf,
  type PlanDependencies,
  type PlanTrail,
} from "../../src/inference/pipeline/plan/plan-call.ts";
import { HealthWindows } from "../../src/inference/routing/health/health-windows.ts";
import { StickySessions } from "../../src/inference/routing/sticky-sessions.ts";
import { FakeClock } from "./fake-clock.ts";

/** A request body that is not validated yet. */
export type Body = Readonly<Record<string, unknown>>;

/** How requests are read on each chat-like surface. */
const readers = {
  chat: {
    dialect: openaiChat,
    validate: checkChatRequest,
  },
  messages: {
    dialect: anthropicMessages,
    validate: checkMessagesRequest,
  },
  responses: {
    dialect: openaiResponses,
    validate: checkResponsesRequest,
  },
} as const;

export type ChatSurface = keyof typeof readers;

/** The chat-like surfaces. */
export const chatSurfaces = Object.keys(readers) as readonly ChatSurface[];

/** Returns the dialect that clients of a surface speak. */
export const dialectOf = (surface: ChatSurface) => readers[surface].dialect;

/** The properties of a request other than its body. */
export interface Around {
  allowedModels?: readonly string[] | null;
  forcedProviders?: readonly string[] | undefined;
  /** Input tokens, instead of the estimate from the body's length. */
  inputTokens?: number | undefined;
}

const signatures = new CallSignatures().of("ws");

/** Returns a validated request of a surface as its route reads it. Throws `GatewayError`. */
export function callOn(
  surface: ChatSurface,
  body: Body,
  { allowedModels = null, forcedProviders, inputTokens }: Around = {},
): ChatCall {
  const { dialect, validate } = readers[surface];
  validate(body);
  const caller = {
    kind: "llm-key",
    key: { id: "key", allowedModels },
    workspace: { id: "ws" },
  } as LlmKeyCaller;
  const call = chatCall(
    {
      traceId: "0".repeat(32),
      generationId: "gen",
      shownId: "shown",
      caller,
      startedMs: 0,
      signalOf: undefined,
      wantsBalance: false,
      forcedProviders,
      tokensUsed: undefined,
      origin: undefined,
      appTitle: undefined,
      userAgent: undefined,
      traceParent: undefined,
      sessionId: typeof body["session_id"] === "string" ? body["session_id"] : undefined,
    },
    {
      dialect,
      body,
      text: JSON.stringify(body),
      presetId: undefined,
      dialectHeaders: {},
      signatures,
      nowSeconds: () => 0,
    },
  );
  return inputTokens === undefined
    ? call
    : { ...call, requirements: { ...call.requirements, estimateInputTokens: () => inputTokens } };
}

/** Returns what planning reads in a gateway whose callers have no provider keys of their own. */
export function planDependencies(
  catalog: CatalogSnapshot,
  {
    privacy = noPrivacy,
    clock = new FakeClock(),
    ...parts
  }: Partial<Pick<PlanDependencies, "health" | "sessions" | "random">> & {
    privacy?: Privacy;
    clock?: FakeClock;
  } = {},
): PlanDependencies {
  return {
    catalog: () => catalog,
    privacyOf: () => privacy,
    providerKeys: { concern: () => false } as unknown as PlanDependencies["providerKeys"],
    isServable: () => true,
    health: new HealthWindows(clock),
    sessions: new StickySessions(clock),
    random: () => 0,
    ...parts,
  };
}

/** Plans a body of a surface as the gateway does, from its validation on. Throws `GatewayError`. */
export const planBody = (
  deps: PlanDependencies,
  { surface, body, ...around }: Around & { surface: ChatSurface; body: Body },
): PlanTrail => trailOf(deps, callOn(surface, body, around));
