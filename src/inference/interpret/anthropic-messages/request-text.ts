import { editMembers, type MemberEdits } from "../../../platform/lib/json-members.ts";
import type { Loss } from "../../canonical/loss.ts";
import { messagesGatewayFields } from "../../dialects/anthropic-messages/request-schema.ts";
import type { ClientRequest, InterpretedRoute } from "../interpretation.ts";
import { budgetWithin, fittedCap } from "../lowered-cap.ts";
import { memberText } from "./member-text.ts";
import { openSeals } from "./open-seals.ts";

/** The body for an upstream that speaks the caller's dialect: the original text without what is the gateway's own. */
export function requestText(
  { text, body }: ClientRequest,
  { route, outputCap }: InterpretedRoute,
): { text: string; losses: readonly Loss[] } {
  const edits = new Map<string, string | undefined>([
    ["model", JSON.stringify(route.upstreamModel)],
  ]);
  for (const field of messagesGatewayFields) if (field in body) edits.set(field, undefined);
  const { max_tokens: asked } = body;
  const fitted = fittedCap(asked, { field: "max_tokens", route, outputCap });
  if (fitted.cap !== undefined && fitted.cap !== asked)
    lowerCaps({ text, body }, { edits, cap: fitted.cap });
  const { messages, lacksThoughts, losses } = openSeals(text, {
    messages: body["messages"],
    route,
  });
  if (messages !== undefined) edits.set("messages", JSON.stringify(messages));
  const stopsThinking =
    lacksThoughts && (Object(body["thinking"]) as { type?: unknown }).type === "enabled";
  if (stopsThinking) edits.set("thinking", undefined);
  const reason = "the calls under way were made without thoughts of this model";
  const unthought: Loss[] = stopsThinking ? [{ field: "thinking", reason }] : [];
  return {
    text: editMembers(text, edits satisfies MemberEdits),
    losses: [...fitted.losses, ...losses, ...unthought],
  };
}

/** The lowered cap, and a budget for thoughts below it. */
function lowerCaps(
  { text, body }: Pick<ClientRequest, "text" | "body">,
  { edits, cap }: { edits: Map<string, string | undefined>; cap: number },
): void {
  edits.set("max_tokens", String(cap));
  const budget = (body["thinking"] as { budget_tokens?: unknown } | null | undefined)
    ?.budget_tokens;
  const written =
    typeof budget === "number" && budget >= cap ? memberText(text, "thinking") : undefined;
  if (written === undefined || typeof budget !== "number") return;
  edits.set(
    "thinking",
    editMembers(written, new Map([["budget_tokens", String(budgetWithin(cap, budget))]])),
  );
}
