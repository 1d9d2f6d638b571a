import { editMembers, scanMembers } from "../../../platform/lib/json-members.ts";
import type { Loss } from "../../canonical/loss.ts";
import { flatEffort } from "../../dialects/flat-effort.ts";
import { includedSeals } from "../../dialects/openai-responses/decode-request.ts";
import {
  responsesGatewayFields,
  responsesLifecycleFields,
} from "../../dialects/openai-responses/request-schema.ts";
import { clampEffort } from "../clamp-effort.ts";
import type { ClientRequest, InterpretedRoute } from "../interpretation.ts";
import { fittedCap } from "../lowered-cap.ts";
import { takesFormat, undeclaredFormat } from "../reasoning-rules.ts";
import { replayedItems } from "./replayed-items.ts";

type Edits = Map<string, string | undefined>;

/** A request as it goes upstream. */
export interface RequestText {
  text: string;
  losses: readonly Loss[];
}

/**
 * The body for a candidate that speaks Responses too: the original text with only those members replaced
 * that have to change. Nothing is stored upstream; the gateway keeps what is to be kept.
 */
export function requestText(
  request: ClientRequest,
  { route, model, outputCap }: InterpretedRoute,
): RequestText {
  const { body, text } = request;
  const edits: Edits = new Map([
    ["model", JSON.stringify(route.upstreamModel)],
    ["store", "false"],
  ]);
  for (const field of [...responsesGatewayFields, ...responsesLifecycleFields])
    if (field in body) edits.set(field, undefined);
  const { max_output_tokens: asked } = body;
  const fitted = fittedCap(asked, { field: "max_output_tokens", route, outputCap });
  if (fitted.cap !== undefined && fitted.cap !== asked)
    edits.set("max_output_tokens", String(fitted.cap));
  const declared = route.reasoning ?? model.reasoning;
  editReasoning(request, { edits, declared });
  if (declared !== undefined || route.reasoningFeature === true) askForSeals(body, edits);
  const { items, losses } = replayedItems(body["input"], route.provider.id);
  if (items !== undefined) edits.set("input", JSON.stringify(items));
  const stripped = stripFormat(request, { edits, route });
  return { text: editMembers(text, edits), losses: [...fitted.losses, ...losses, ...stripped] };
}

/** Leaves out the format of the answer for a route that does not declare it. */
function stripFormat(
  { body, text }: ClientRequest,
  { edits, route }: { edits: Edits; route: InterpretedRoute["route"] },
): Loss[] {
  const { format } = Object(body["text"]) as { format?: { type?: unknown } | null };
  if (!format || format.type === "text" || takesFormat(route)) return [];
  const member = scanMembers(text).findLast(({ key }) => key === "text");
  if (member === undefined) return [];
  edits.set(
    "text",
    editMembers(text.slice(member.valueStart, member.valueEnd), new Map([["format", undefined]])),
  );
  return [undeclaredFormat("text.format")];
}

/** Members of `reasoning` that are the gateway's own words for what OpenAI says by an effort and by summaries. */
const ownMembers = ["enabled", "max_tokens", "exclude"] as const;

function editReasoning(
  { body, text }: ClientRequest,
  { edits, declared }: { edits: Edits; declared: Parameters<typeof clampEffort>[1] },
): void {
  const reasoning = body["reasoning"] as Readonly<Record<string, unknown>> | null | undefined;
  const member = reasoning
    ? scanMembers(text).findLast(({ key }) => key === "reasoning")
    : undefined;
  if (!reasoning || member === undefined) return;
  const inner: Edits = new Map(
    ownMembers.filter((name) => name in reasoning).map((name) => [name, undefined]),
  );
  if (reasoning.exclude === true && "summary" in reasoning) inner.set("summary", undefined);
  const asked = askedEffort(reasoning);
  const effort = asked === undefined ? undefined : clampEffort(asked, declared);
  if (asked !== undefined && effort !== reasoning.effort)
    inner.set("effort", effort === undefined ? undefined : JSON.stringify(effort));
  if (inner.size > 0)
    edits.set("reasoning", editMembers(text.slice(member.valueStart, member.valueEnd), inner));
}

/** The effort that stands in the caller's words, or that its switch or its budget stands for; thinking that is merely on has none. */
function askedEffort({
  effort,
  enabled,
  max_tokens: budget,
}: Readonly<Record<string, unknown>>): string | undefined {
  if (enabled === false) return "none";
  if (typeof effort === "string") return effort;
  return typeof budget === "number" && enabled !== true
    ? flatEffort({ budgetTokens: budget })
    : undefined;
}

/** Without storage a thought comes back only as ciphertext, which has to be asked for. */
function askForSeals(body: ClientRequest["body"], edits: Edits): void {
  const include: unknown = body["include"] ?? [];
  if (!Array.isArray(include) || include.includes(includedSeals)) return;
  edits.set("include", JSON.stringify([...(include as unknown[]), includedSeals]));
}
