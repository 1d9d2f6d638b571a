import { z } from "zod";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { providerIdIn, type CatalogSnapshot } from "../../inference/catalog/model.ts";
import { anthropicMessages } from "../../inference/dialects/anthropic-messages/index.ts";
import {
  checkCountRequest,
  checkMessagesRequest,
  countTokensRequestSchema,
  messagesRequestSchema,
} from "../../inference/dialects/anthropic-messages/request-schema.ts";
import {
  continuesThread,
  previousMessageIds,
  unsupportedThread,
} from "../../inference/dialects/anthropic-messages/threads.ts";
import { countTokens } from "../../inference/pipeline/unbilled-requests.ts";
import type { ChatCall, InferenceCall } from "../../inference/pipeline/inference-call.ts";
import { findModel } from "../../inference/routing/resolve-models.ts";
import { brandHeader } from "../../platform/kernel/brand.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import type { Dependencies } from "../dependencies.ts";
import { outputCapHeader } from "./answer-call.ts";
import { answerMessages } from "./tools/serve-dialogue.ts";
import { withEarlyStream } from "./streams/early-stream.ts";
import {
  inferenceBodyBytesMax,
  readCall,
  withCall,
  type CallReader,
  type CallServices,
} from "./read-call.ts";
import { messagesHeaders } from "./request-headers.ts";
import { agentSessionHeader, tellingCaps } from "./spend-cap.ts";
import { messageEventSchema } from "./streams/stream-events.ts";

/** The reader of requests in Anthropic's dialect. */
export const messagesReader: CallReader = {
  dialect: anthropicMessages,
  idPrefix: "msg_",
  validate: checkMessagesRequest,
  dialectHeaders: ["anthropic-version", "anthropic-beta", ...anthropicMessages.providerHeaders],
};

/** What answering a message needs: what every call does, and the tools that run here. */
export type MessagesServices = CallServices &
  Pick<
    Dependencies,
    "documents" | "upstreamServers" | "toolCalls" | "maxToolRounds" | "search" | "publicUrl"
  >;

/** A whole answer. */
export const messageSchema = () =>
  z.looseObject({
    id: z.string(),
    type: z.literal("message"),
    role: z.literal("assistant"),
    model: z.string(),
    content: z.array(z.looseObject({ type: z.string() })),
    stop_reason: z.string().nullable(),
    usage: z.looseObject({ input_tokens: z.int(), output_tokens: z.int(), cost: z.number() }),
  });

/** Serves Anthropic's Messages dialect, whole or streamed, on any model of the catalog. */
export const messages = defineEndpoint<
  MessagesServices & Pick<Dependencies, "ledger" | "generations">
>({
  method: "POST",
  path: "/messages",
  base: "api",
  access: { llmKey: true },
  counting: "by-handler",
  bodyBytesMax: inferenceBodyBytesMax,
  summary: "Create a message, whole or streamed.",
  description:
    "Anthropic's Messages dialect on any model. Providers of this dialect receive the body unchanged, others a translation. Send " +
    "the key as `x-api-key` or as `Authorization: Bearer`. The charge is in `usage.cost`.",
  tag: "Inference",
  rawBody: messagesRequestSchema,
  otherResponseTypes: ["text/event-stream"],
  headers: messagesHeaders,
  answerHeaders: outputCapHeader,
  streamEvents: messageEventSchema,
  response: messageSchema,
  encodeError: anthropicMessages.encodeError,
  async handle(context, dependencies) {
    return withCall(context, { reader: messagesReader, services: dependencies }, async (call) => {
      await linkPreviousAnswers(call, dependencies);
      const { inference } = dependencies;
      return withEarlyStream(context, { call, dialect: anthropicMessages, inference }, () =>
        inMessagesWords(call, dependencies, () =>
          tellingCaps(
            {
              caller: call.caller,
              isAgent: context.request.headers.has(agentSessionHeader),
              answerHeaders: context.headers,
              deps: dependencies,
            },
            () => answerMessages(context, call, dependencies),
          ),
        ),
      );
    });
  },
});

/**
 * Finds the earlier answers that a request refers to among the records of its workspace. Throws
 * where the request needs a thread although the provider may keep nothing.
 */
async function linkPreviousAnswers(
  call: ChatCall,
  { generations, inference }: Pick<Dependencies, "generations" | "inference">,
): Promise<void> {
  const { body, caller, requirements } = call;
  if (isPresent(body["thread"])) {
    const { zdr } = Object(body["provider"]) as { zdr?: unknown };
    if (zdr === true || inference.privacyOf(caller).zdr)
      throw unsupportedThread(
        "provider.zdr",
        "zero data retention excludes conversations that the provider holds.",
      );
  }
  const ids = previousMessageIds(body);
  if (ids.length === 0) return;
  const records = await Promise.all(ids.map((id) => generations.find(caller.workspace.id, id)));
  const known = records.flatMap((record, index) => {
    if (record === undefined || record.upstreamId === null) return [];
    const { provider: providerId, upstreamId, promptTokens, completionTokens } = record;
    const tokens = promptTokens + completionTokens;
    return [{ id: ids[index] ?? "", providerId, upstreamId, tokens }];
  });
  call.previousAnswers = new Map(known.map(({ id, ...answer }) => [id, answer]));
  // The provider charges what it holds as input.
  if (continuesThread(body)) requirements.heldTokens = known[0]?.tokens ?? 0;
}

const isPresent = (value: unknown): boolean => value !== undefined && value !== null;

/** The header that says where the count comes from: `native` or `estimated`. */
export const tokenCountHeader = brandHeader("Token-Count").toLowerCase();

/** Counts the input tokens of a Messages request. */
export const countMessageTokens = defineEndpoint<CallServices>({
  method: "POST",
  path: "/messages/count_tokens",
  base: "api",
  access: { llmKey: true },
  counting: "by-handler",
  bodyBytesMax: inferenceBodyBytesMax,
  summary: "Count the input tokens of a message.",
  description:
    "Returns the provider's own count if it offers one, otherwise an estimate. X-Service-Token-Count is `native` or `estimated`. " +
    "Free of charge.",
  tag: "Inference",
  rawBody: countTokensRequestSchema,
  response: () => z.object({ input_tokens: z.int() }),
  encodeError: anthropicMessages.encodeError,
  async handle(context, dependencies) {
    const reader = { ...messagesReader, validate: checkCountRequest };
    const call = await readCall(context, reader, dependencies);
    const { inputTokens, source } = await inMessagesWords(call, dependencies, () =>
      countTokens(dependencies.inference, call),
    );
    return context.json({ input_tokens: inputTokens }, { headers: { [tokenCountHeader]: source } });
  },
});

/**
 * Returns whether an id names an owner that the catalog knows neither as an owner of models nor as
 * a provider.
 */
function isOfStranger(catalog: CatalogSnapshot, id: string): boolean {
  const end = id.indexOf("/");
  const maker = id.slice(0, Math.max(end, 0)).toLowerCase();
  if (maker === "" || providerIdIn(catalog, maker) !== undefined) return false;
  for (const { owner } of catalog.models.values()) if (owner === maker) return false;
  return true;
}

/**
 * Returns an error with the contract's code for Messages. An unknown model is `unknown_provider`
 * where its id names an unknown owner, or else `no_upstream`; errors of known models are not
 * changed.
 */
function worded(
  thrown: unknown,
  { catalog, body }: { catalog: CatalogSnapshot; body: Readonly<Record<string, unknown>> },
): unknown {
  if (
    !(thrown instanceof GatewayError) ||
    thrown.code !== "model_unavailable" ||
    thrown.fault === "upstream"
  )
    return thrown;
  const { model, models } = body;
  const ids = [model, ...(Array.isArray(models) ? (models as unknown[]) : [])].map(String);
  if (ids.every((id) => findModel(catalog, id) !== undefined)) return thrown;
  const code = ids.some((id) => isOfStranger(catalog, id)) ? "unknown_provider" : "no_upstream";
  return new GatewayError(code, thrown.message, {
    param: thrown.param ?? "model",
    metadata: thrown.metadata,
  });
}

/** Runs an endpoint of Messages, and renames its errors to the contract's codes. */
async function inMessagesWords<Result>(
  { body, caller }: Pick<InferenceCall, "body" | "caller">,
  { inference }: Pick<Dependencies, "inference">,
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    return await work();
  } catch (thrown) {
    throw worded(thrown, { catalog: inference.catalog(caller.workspace.id), body });
  }
}
