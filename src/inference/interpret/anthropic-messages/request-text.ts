import { editMembers, type MemberEdits } from "../../../platform/lib/json-members.ts";
import type { Loss } from "../../canonical/loss.ts";
import { messagesGatewayFields } from "../../dialects/anthropic-messages/request-schema.ts";
import type { ClientRequest, InterpretedRoute } from "../interpretation.ts";
import { openSeals } from "./open-seals.ts";

/** The body for an upstream that speaks the caller's dialect: the original text without what is the gateway's own. */
export function requestText({ text, body }: ClientRequest, { route }: InterpretedRoute): { text: string; losses: readonly Loss[] } {
  const edits = new Map<string, string | undefined>([["model", JSON.stringify(route.upstreamModel)]]);
  for (const field of messagesGatewayFields) if (field in body) edits.set(field, undefined);
  const opened = openSeals(text, { messages: body["messages"], providerId: route.provider.id });
  if (opened.messages !== undefined) edits.set("messages", JSON.stringify(opened.messages));
  return { text: editMembers(text, edits satisfies MemberEdits), losses: opened.losses };
}
