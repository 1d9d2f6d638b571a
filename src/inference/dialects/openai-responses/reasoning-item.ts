import type { JsonObject } from "../../canonical/json.ts";
import {
  openProvenance,
  sealWithProvenance,
  type Provenance,
  type ReasoningPart,
} from "../../canonical/reasoning.ts";
import { asArray, asObject, asString } from "../request-fields.ts";
import { withoutUndefined } from "../without-undefined.ts";

/** How a seal is read: from a client with the gateway's mark, from an upstream as that upstream's own. */
export type SealReader = (sealed: string) => { seal: string; provenance?: Provenance };

/** Reads an upstream's seals: whatever they look like, they are its own. */
export const sealsOf =
  (providerId: string | undefined): SealReader =>
  (sealed) => ({ seal: sealed, ...(providerId !== undefined && { provenance: { providerId } }) });

/** Begins a seal that holds more than ciphertext: what Responses has no fields for. */
const packMark = "th1.";

/** What is packed: a signature stands over its text, so the text travels with it and clients cannot change it. */
interface PackedThought {
  text?: string;
  summary?: readonly string[];
  signature?: string;
  encrypted?: string;
  format?: string;
  /** The signature belongs to this call and not to a thought (Gemini). */
  callId?: string;
}

/** A call's signature as it travels in front of the call. */
export interface CallSignature {
  callId: string;
  signature: string;
  provenance?: Provenance;
}

const pack = (packed: PackedThought): string =>
  packMark + Buffer.from(JSON.stringify(packed)).toString("base64url");

function unpack(seal: string): PackedThought | undefined {
  if (!seal.startsWith(packMark)) return undefined;
  try {
    return asObject(
      JSON.parse(Buffer.from(seal.slice(packMark.length), "base64url").toString("utf8")),
    ) as PackedThought | undefined;
  } catch {
    return undefined;
  }
}

/** `encrypted_content` of a thought for a client, marked with its maker; undefined when the thought is not sealed. */
export function sealedContent(part: ReasoningPart): string | undefined {
  const { text, summary, signature, encrypted, format, provenance } = part;
  if (signature !== undefined || (encrypted !== undefined && format !== undefined)) {
    return sealWithProvenance(
      pack({ text, summary, signature, encrypted, format } as PackedThought),
      provenance,
    );
  }
  return encrypted === undefined ? undefined : sealWithProvenance(encrypted, provenance);
}

/** The item in front of a call that keeps the call's signature for the next turn. */
export const signatureItem = (id: string, call: CallSignature): JsonObject => ({
  id,
  type: "reasoning",
  summary: [],
  encrypted_content: sealWithProvenance(
    pack({ callId: call.callId, signature: call.signature }),
    call.provenance,
  ),
});

const texts = (value: unknown): string[] =>
  (asArray(value) ?? []).flatMap((entry) => asString(asObject(entry)?.text) ?? []);

/**
 * A reasoning item as a thought, or as the signature of the call that follows it. What was packed wins
 * over what is shown: only the former is what its maker signed.
 */
export function decodeReasoningItem(
  item: JsonObject,
  readSeal: SealReader = openProvenance,
): ReasoningPart | CallSignature {
  const sealed = asString(item.encrypted_content);
  const { seal, provenance } = sealed ? readSeal(sealed) : {};
  const packed = seal === undefined ? undefined : unpack(seal);
  if (packed?.callId !== undefined && packed.signature !== undefined) {
    return {
      callId: packed.callId,
      signature: packed.signature,
      ...(provenance && { provenance }),
    };
  }
  const summary = texts(item.summary);
  const content = texts(item.content).join("");
  const shown = packed ?? {
    ...(content !== "" && { text: content }),
    ...(summary.length > 0 && { summary }),
    ...(seal && { encrypted: seal }),
  };
  return withoutUndefined<ReasoningPart>({
    type: "reasoning",
    ...shown,
    provenance,
    id: asString(item.id) || undefined,
  });
}

/** Summaries that show a thought to a client: its own ones, and the thought itself as the last. */
export const shownSummaries = ({ summary = [], text }: ReasoningPart): string[] =>
  text === undefined ? [...summary] : [...summary, text];

/** Summaries on the wire. */
export const summaryParts = (summaries: readonly string[]): JsonObject[] =>
  summaries.map((text) => ({ type: "summary_text", text }));
