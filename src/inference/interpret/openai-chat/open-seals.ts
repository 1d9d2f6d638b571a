import type { Loss } from "../../canonical/loss.ts";
import { isForeignReasoning, openProvenance } from "../../canonical/reasoning.ts";

/** How every seal begins that the gateway has marked with its maker. */
const mark = '"gw1:';

type Fields = Readonly<Record<string, unknown>>;

const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Messages as one provider takes them back. */
export interface OpenedMessages {
  /** Undefined where the client's own text can stay as it is. */
  messages: readonly unknown[] | undefined;
  losses: readonly Loss[];
}

/**
 * The messages with seals as their maker wrote them: answers that were translated carry their maker's name in front of each seal. One of
 * the provider's own is opened, and a thought or a call's signature of another's is left out. Bodies without a mark, nearly all, are not
 * looked into.
 */
export function openSeals(
  text: string,
  { messages, providerId }: { messages: unknown; providerId: string },
): OpenedMessages {
  if (!text.includes(mark) || !Array.isArray(messages)) return { messages: undefined, losses: [] };
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

/** The object with a seal as its maker wrote it; undefined where another provider made it. */
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
