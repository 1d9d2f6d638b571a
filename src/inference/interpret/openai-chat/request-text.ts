import { editMembers, scanMembers } from "../../../platform/lib/json-members.ts";
import type { Loss } from "../../canonical/loss.ts";
import type { DialectQuirks } from "../../dialects/dialect.ts";
import { chatGatewayFields } from "../../dialects/openai-chat/request-schema.ts";
import { flatEffort } from "../../dialects/flat-effort.ts";
import { clampEffort } from "../clamp-effort.ts";
import type { ClientRequest, InterpretedRoute } from "../interpretation.ts";
import { budgetWithin } from "../lowered-cap.ts";
import { openSeals } from "./open-seals.ts";
import { takesFormat, undeclaredFormat } from "../reasoning-rules.ts";

type Edits = Map<string, string | undefined>;

/** A request as it goes upstream. */
export interface RequestText {
  text: string;
  losses: readonly Loss[];
}

/**
 * The body for a candidate that speaks the caller's dialect: the original text with only those members
 * replaced that have to change, so that fields nobody here knows arrive as they were sent.
 */
export function requestText(
  request: ClientRequest,
  { route, model, outputCap }: InterpretedRoute,
): RequestText {
  const { body } = request;
  const { quirks } = route.provider;
  const losses: Loss[] = [];
  const edits: Edits = new Map([["model", JSON.stringify(route.upstreamModel)]]);
  for (const field of chatGatewayFields) if (field in body) edits.set(field, undefined);
  const declared = route.reasoning ?? model.reasoning;
  if (quirks.reasoningObject === true) clampEfforts(request, { edits, declared });
  else flattenReasoning(request, { edits, declared, losses });
  if (body["stream"] === true && !quirks.noStreamOptions) {
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
    losses.push(undeclaredFormat("response_format"));
  }
  renameMaxTokens(request, { edits, field: quirks.maxTokensField });
  if (outputCap !== undefined)
    lowerMaxTokens(request, { edits, field: quirks.maxTokensField, outputCap });
  const opened = openSeals(request.text, {
    messages: body["messages"],
    providerId: route.provider.id,
  });
  if (opened.messages !== undefined) edits.set("messages", JSON.stringify(opened.messages));
  return { text: editMembers(request.text, edits), losses: [...losses, ...opened.losses] };
}

type Declared = Parameters<typeof clampEffort>[1];

/** Clamps the flat effort, and the one in OpenRouter's `reasoning` object. */
function clampEfforts(
  { body, text }: ClientRequest,
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

/**
 * Says the `reasoning` object as a flat effort, for providers that do not know the object and ignore or refuse it. A flat effort beside
 * it wins, as it does in translation.
 */
function flattenReasoning(
  { body }: ClientRequest,
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

/** The stream options as the caller wrote them, with usage asked for. */
function withUsage({ text }: ClientRequest, { isObject }: { isObject: boolean }): string {
  const options = isObject
    ? scanMembers(text).findLast(({ key }) => key === "stream_options")
    : undefined;
  if (options === undefined) return '{"include_usage":true}';
  return editMembers(
    text.slice(options.valueStart, options.valueEnd),
    new Map([["include_usage", "true"]]),
  );
}

/** Writes the output cap under the name that the upstream knows: one that does not know the client's would ignore the cap. */
function renameMaxTokens(
  { body }: ClientRequest,
  { edits, field = "max_tokens" }: { edits: Edits; field: DialectQuirks["maxTokensField"] },
): void {
  if (field === "either") return;
  const other = field === "max_tokens" ? "max_completion_tokens" : "max_tokens";
  const limit = body["max_completion_tokens"] ?? body["max_tokens"];
  if (!(other in body) || typeof limit !== "number") return;
  edits.set(other, undefined);
  edits.set(field, String(limit));
}

const capFields = ["max_completion_tokens", "max_tokens"] as const;

/** The cap that is borne, in each field that says how long the answer may be, and a budget for thoughts below it. */
function lowerMaxTokens(
  request: ClientRequest,
  {
    edits,
    field = "max_tokens",
    outputCap,
  }: { edits: Edits; field: DialectQuirks["maxTokensField"]; outputCap: number },
): void {
  const sent = capFields
    .map((name) => ({
      name,
      text: edits.has(name) ? edits.get(name) : numberText(request.body[name]),
    }))
    .filter(({ text }) => text !== undefined);
  if (sent.length === 0) edits.set(field === "either" ? "max_tokens" : field, String(outputCap));
  for (const { name, text } of sent)
    if (Number(text) > outputCap) edits.set(name, String(outputCap));
  lowerBudget(request, { edits, outputCap });
}

const numberText = (value: unknown): string | undefined =>
  typeof value === "number" ? String(value) : undefined;

function lowerBudget(
  { body, text }: ClientRequest,
  { edits, outputCap }: { edits: Edits; outputCap: number },
): void {
  const budget = (body["reasoning"] as { max_tokens?: unknown } | null | undefined)?.max_tokens;
  if (typeof budget !== "number" || budget < outputCap) return;
  // The object is gone where it was said as an effort.
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
