import {
  editInParts,
  editMembers,
  joined,
  scanMembers,
} from "../../../../platform/kernel/json/json-members.ts";
import type { Loss } from "../../../canonical/request.ts";
import { isForeignReasoning, openProvenance } from "../../../canonical/reasoning.ts";
import { removeRefused } from "../../shared/extras/charged-extras.ts";
import {
  budgetWithin,
  clampEffort,
  flatEffort,
  reasonsAt,
  takesFormat,
  undeclaredFormat,
} from "../../shared/reasoning-rules.ts";
import type { OriginalRequest, Passthrough, TargetRoute } from "../../shared/exchange.ts";
import type { JsonObject } from "../../../canonical/json.ts";
import { refusedFields } from "../../shared/refused-parameters.ts";
import { AnswerReader } from "../../shared/stream/answer-reader.ts";
import { ChatStreamDecoder } from "../decode-stream.ts";
import { bodyChanges, hasFunctionRules, hasMessageRules } from "../fitting/fit-body.ts";
import { fitCap } from "../../shared/output-cap.ts";
import { answerShapeOf } from "./answer-shape.ts";
import { readCompletion } from "./passthrough-answer.ts";
import { KeptWriter } from "./passthrough-stream.ts";
import { chatGatewayFields, openRouterExtras, openRouterGrants } from "../request-schema.ts";

/**
 * Passes requests of chat clients to chat upstreams: the original bytes, with only those members
 * replaced that have to change.
 */
export function passThrough(request: OriginalRequest, route: TargetRoute): Passthrough {
  const { text, parts, losses } = requestText(request, route);
  const shape = answerShapeOf(request);
  const { traceId, nowSeconds } = request;
  const { id: providerId } = route.route.provider;
  return {
    requestText: text,
    requestParts: parts,
    losses,
    readWhole: (answer, body) => readCompletion(answer, body, { shape, providerId, nowSeconds }),
    openStream(options) {
      const { callSeed, toolNames } = shape;
      const decoder = new ChatStreamDecoder({ callSeed, toolNames });
      const reader = new AnswerReader(decoder, options);
      const kept = { ...options, traceId, shape, providerId, nowSeconds, reader, decoder };
      return { reader, writer: new KeptWriter(kept) };
    },
  };
}

type Edits = Map<string, string | undefined>;

/** A request as it is sent upstream. */
interface RequestText {
  text: string;
  /** The same text in parts. */
  parts: readonly string[];
  losses: readonly Loss[];
}

/**
 * Returns the body for a candidate that speaks the caller's dialect: the original text with only
 * those members replaced that have to change, so that fields unknown to the gateway arrive as sent.
 */
function requestText(
  request: OriginalRequest,
  { route, model, outputCap }: TargetRoute,
): RequestText {
  const { body } = request;
  const { deviations } = route.provider;
  const losses: Loss[] = [];
  const edits: Edits = new Map();
  edits.set("model", JSON.stringify(route.upstreamModel));
  for (const field of chatGatewayFields) if (field in body) edits.set(field, undefined);
  const declared = route.reasoning ?? model.reasoning;
  if (deviations.reasoningObject === true) clampEfforts(request, { edits, declared });
  else {
    flattenReasoning(request, { edits, declared, losses });
    removeOpenRouterFields(request, { edits, losses });
  }
  if (deviations.noStreamOptions === true && "stream_options" in body)
    edits.set("stream_options", undefined);
  if (body["stream"] === true && !deviations.noStreamOptions) {
    const options = body["stream_options"];
    const asked =
      typeof options === "object" &&
      options !== null &&
      (options as { include_usage?: unknown }).include_usage === true;
    if (!asked)
      edits.set(
        "stream_options",
        withUsage(request, { isObject: typeof options === "object" && options !== null }),
      );
  }
  if ((body["response_format"] ?? undefined) !== undefined && !takesFormat(route)) {
    edits.set("response_format", undefined);
    losses.push(undeclaredFormat());
  }
  losses.push(...removeRefused(body, { edits, deviations }));
  losses.push(...fitCap(body, { edits, route, outputCap }));
  if (outputCap !== undefined) lowerBudget(request, { edits, outputCap });
  const opened = openSeals(request.text, {
    messages: body["messages"],
    providerId: route.provider.id,
  });
  if (opened.messages !== undefined) edits.set("messages", JSON.stringify(opened.messages));
  losses.push(...fitToUpstream(request, { edits, opened: opened.messages, route, model }));
  const parts = editInParts(request.text, edits);
  losses.push(...opened.losses);
  return { text: joined(parts), parts, losses };
}

/**
 * Leaves out the fields that the model refuses, and fits the rest to the upstream's deviations.
 * Returns what was lost.
 */
function fitToUpstream(
  { body }: OriginalRequest,
  {
    edits,
    opened,
    route,
    model,
  }: { edits: Edits; opened: readonly unknown[] | undefined } & TargetRoute,
): readonly Loss[] {
  const { deviations } = route.provider;
  if (!hasRules(route)) return [];
  const effort = edits.has("reasoning_effort")
    ? edits.get("reasoning_effort")
    : JSON.stringify(body["reasoning_effort"]);
  const sent = {
    ...body,
    ...(effort !== undefined && { reasoning_effort: JSON.parse(effort) as unknown }),
    ...(opened !== undefined && { messages: opened }),
  };
  const refused = refusedFields(sent, { deviations, refuses: route.refuses });
  const gone = refused.fields.filter((field) => !isRemoved(edits, field));
  for (const field of gone) edits.set(field, undefined);
  const kept = Object.entries(sent).filter(([field]) => !isRemoved(edits, field));
  const { changes, losses } = bodyChanges(Object.fromEntries(kept) as JsonObject, {
    deviations,
    reasons: reasonsAt({ model, route }),
    upstreamModel: route.upstreamModel,
  });
  for (const [field, value] of Object.entries(changes))
    edits.set(field, value === undefined ? undefined : JSON.stringify(value));
  return [
    ...refused.losses.filter(({ field }) => gone.includes(field)),
    ...losses,
    ...longUser(body["user"], { edits, most: deviations.userLengthMax }),
  ];
}

/** Returns whether anything of a body may have to change for a route. */
const hasRules = ({
  refuses,
  upstreamModel,
  provider: { deviations },
}: TargetRoute["route"]): boolean =>
  refuses !== undefined ||
  deviations.unsupportedFields !== undefined ||
  deviations.userLengthMax !== undefined ||
  deviations.jsonWithoutSchema === true ||
  deviations.readsTextAlone === true ||
  deviations.thinkingSwitch !== undefined ||
  deviations.temperatureMax !== undefined ||
  deviations.refusesBegunAnswers === true ||
  hasFunctionRules(deviations) ||
  hasMessageRules({ deviations, upstreamModel });

const isRemoved = (edits: Edits, field: string): boolean =>
  edits.has(field) && edits.get(field) === undefined;

/** Leaves out an end user's id that is longer than the provider takes. */
function longUser(
  user: unknown,
  { edits, most }: { edits: Edits; most: number | undefined },
): readonly Loss[] {
  if (most === undefined || typeof user !== "string" || user.length <= most) return [];
  edits.set("user", undefined);
  return [{ field: "user", reason: `the provider takes at most ${most} characters` }];
}

type Declared = Parameters<typeof clampEffort>[1];

/** Clamps the flat effort, and the one in OpenRouter's `reasoning` object. */
function clampEfforts(
  { body, text }: OriginalRequest,
  { edits, declared }: { edits: Edits; declared: Declared },
): void {
  clampFlat(body["reasoning_effort"], { edits, declared });
  const nested = (body["reasoning"] as { effort?: unknown } | null | undefined)?.effort;
  if (typeof nested !== "string") return;
  const clamped = clampEffort(nested, declared);
  const member =
    clamped === nested ? undefined : scanMembers(text).findLast(({ key }) => key === "reasoning");
  if (member === undefined) return;
  const value = clamped === undefined ? undefined : JSON.stringify(clamped);
  edits.set(
    "reasoning",
    editMembers(text.slice(member.valueStart, member.valueEnd), new Map([["effort", value]])),
  );
}

function clampFlat(
  effort: unknown,
  { edits, declared }: { edits: Edits; declared: Declared },
): void {
  if (typeof effort !== "string") return;
  const clamped = clampEffort(effort, declared);
  if (clamped !== effort)
    edits.set("reasoning_effort", clamped === undefined ? undefined : JSON.stringify(clamped));
}

const openRouterFields = [...openRouterGrants, ...openRouterExtras];

/**
 * Removes the fields that clients of OpenRouter send and other providers refuse, as OpenAI does with
 * 400. The gateway itself reports usage and hides reasoning.
 */
function removeOpenRouterFields(
  { body }: OriginalRequest,
  { edits, losses }: { edits: Edits; losses: Loss[] },
): void {
  for (const field of openRouterFields) {
    if (!(field in body)) continue;
    edits.set(field, undefined);
    if ((openRouterExtras as readonly string[]).includes(field) && body[field] !== null)
      losses.push({ field, reason: "a field of OpenRouter" });
  }
}

/**
 * Converts the `reasoning` object to a flat effort, for providers that do not know the object and
 * ignore or refuse it. A flat effort beside it takes precedence, as in translation.
 */
function flattenReasoning(
  { body }: OriginalRequest,
  { edits, declared, losses }: { edits: Edits; declared: Declared; losses: Loss[] },
): void {
  const flat = body["reasoning_effort"];
  clampFlat(flat, { edits, declared });
  if (!("reasoning" in body)) return;
  edits.set("reasoning", undefined);
  const {
    effort,
    enabled,
    max_tokens: budgetTokens,
    summary,
  } = Object(body["reasoning"]) as Readonly<Record<string, unknown>>;
  if (typeof summary === "string")
    losses.push({ field: "reasoning.summary", reason: "chat has no such field" });
  if (typeof flat === "string") return;
  if (typeof budgetTokens === "number")
    losses.push({ field: "reasoning.budget_tokens", reason: "chat states an effort instead" });
  const asked = flatEffort({
    ...(typeof effort === "string" && { effort }),
    ...(typeof enabled === "boolean" && { enabled }),
    ...(typeof budgetTokens === "number" && { budgetTokens }),
  });
  const clamped = asked === undefined ? undefined : clampEffort(asked, declared);
  if (clamped !== undefined) edits.set("reasoning_effort", JSON.stringify(clamped));
}

/** Returns the caller's stream options, with usage requested. */
function withUsage({ text }: OriginalRequest, { isObject }: { isObject: boolean }): string {
  const options = isObject
    ? scanMembers(text).findLast(({ key }) => key === "stream_options")
    : undefined;
  if (options === undefined) return '{"include_usage":true}';
  return editMembers(
    text.slice(options.valueStart, options.valueEnd),
    new Map([["include_usage", "true"]]),
  );
}

/** Lowers a reasoning budget below the output cap. */
function lowerBudget(
  { body, text }: OriginalRequest,
  { edits, outputCap }: { edits: Edits; outputCap: number },
): void {
  const budget = (body["reasoning"] as { max_tokens?: unknown } | null | undefined)?.max_tokens;
  if (typeof budget !== "number" || budget < outputCap) return;
  // The object was removed where it was converted to an effort.
  if (edits.has("reasoning") && edits.get("reasoning") === undefined) return;
  const member = scanMembers(text).findLast(({ key }) => key === "reasoning");
  const written =
    edits.get("reasoning") ?? (member && text.slice(member.valueStart, member.valueEnd));
  if (written === undefined) return;
  edits.set(
    "reasoning",
    editMembers(written, new Map([["max_tokens", String(budgetWithin(outputCap, budget))]])),
  );
}

/** The beginning of every seal that the gateway has marked with its maker. */
const mark = '"gw1:';

type Fields = Readonly<Record<string, unknown>>;

const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The messages in the form that one provider accepts. */
interface OpenedMessages {
  /** Undefined where the client's own text can stay as it is. */
  messages: readonly unknown[] | undefined;
  losses: readonly Loss[];
}

const nothingOpened: OpenedMessages = { messages: undefined, losses: [] };

/**
 * Returns the messages with seals as their maker wrote them: translated answers carry their maker's
 * name in front of each seal. The provider's own seals are opened; reasoning and call signatures of
 * other makers are left out. Bodies without a mark, which nearly all are, are not examined.
 */
function openSeals(
  text: string,
  { messages, providerId }: { messages: unknown; providerId: string },
): OpenedMessages {
  if (!text.includes(mark) || !Array.isArray(messages)) return nothingOpened;
  const losses: Loss[] = [];
  const opened = messages.map((message: unknown, index): unknown => {
    if (!isFields(message)) return message;
    const lose = (field: string): void =>
      void losses.push({
        field: `messages[${index}].${field}`,
        reason: "sealed by another provider",
      });
    return openedCalls(openedDetails(message, { providerId, lose }), { providerId, lose });
  });
  return { messages: opened, losses };
}

interface Opening {
  providerId: string;
  lose(field: string): void;
}

function openedDetails(message: Fields, { providerId, lose }: Opening): Fields {
  const { reasoning_details: details, ...rest } = message;
  if (!Array.isArray(details)) return message;
  const own = details.flatMap((detail: unknown, position): unknown[] => {
    const shown = isFields(detail)
      ? openedMember(openedMember(detail, "signature", providerId), "data", providerId)
      : detail;
    if (shown === undefined) lose(`reasoning_details[${position}]`);
    return shown === undefined ? [] : [shown];
  });
  return own.length === 0 ? rest : { ...message, reasoning_details: own };
}

function openedCalls(message: Fields, { providerId, lose }: Opening): Fields {
  const { tool_calls: calls } = message;
  if (!Array.isArray(calls)) return message;
  const opened = calls.map((call: unknown, position): unknown => {
    const extra = isFields(call) ? call.extra_content : undefined;
    const google = isFields(extra) ? extra.google : undefined;
    if (!isFields(call) || !isFields(extra) || !isFields(google)) return call;
    const own = openedMember(google, "thought_signature", providerId);
    if (own !== undefined) return { ...call, extra_content: { ...extra, google: own } };
    lose(`tool_calls[${position}].extra_content`);
    const { extra_content: _foreign, ...rest } = call;
    return rest;
  });
  return { ...message, tool_calls: opened };
}

/**
 * Returns the object with a seal as its maker wrote it; undefined where another provider made it.
 */
function openedMember(
  fields: Fields | undefined,
  member: string,
  providerId: string,
): Fields | undefined {
  const sealed = fields?.[member];
  if (fields === undefined || typeof sealed !== "string") return fields;
  const { seal, provenance } = openProvenance(sealed);
  if (provenance === undefined) return fields;
  return isForeignReasoning({ provenance }, providerId) ? undefined : { ...fields, [member]: seal };
}
