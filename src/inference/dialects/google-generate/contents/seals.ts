import {
  openProvenance,
  sealWithProvenance,
  type ReasoningPart,
} from "../../../canonical/reasoning.ts";
import type { ToolCallPart } from "../../../canonical/message.ts";
import type { JsonObject } from "../../../canonical/json.ts";
import { asArray, asObject, asString, withoutUndefined } from "../../shared/wire-fields.ts";

/**
 * What a thought signature of an answer carries that another vendor's model gave: the reasoning
 * before the part that bears it, and the signature of the call itself. Gemini's clients keep
 * signatures and leave out thoughts, so that the reasoning itself is carried.
 */
interface CarriedSeals {
  thoughts: readonly ReasoningPart[];
  call?: Pick<ToolCallPart, "signature" | "provenance">;
}

/**
 * Google's text for a missing signature, where another model made the call or its client did not
 * keep the signature; its clients write it themselves. Source:
 * ai.google.dev/gemini-api/docs/thought-signatures, "FAQ" (2026-11).
 */
export const missingSignature = "skip_thought_signature_validator";

/**
 * The maker that is noted for signatures that came from Google's clients as Google wrote them: no
 * provider has this id, so that no other vendor is sent one.
 */
export const googleItself = { providerId: "google-generate" } as const;

/** The start of every carried seal in base64: that of `gw1:`. */
const carriedStart = /^Z3cxO[i-n]/;

/** Returns a thought signature that carries the seals; base64, as the wire requires. */
export function carrySeals({ thoughts, call }: CarriedSeals): string {
  const maker = thoughts.find(({ provenance }) => provenance !== undefined) ?? call;
  const carried = withoutUndefined<JsonObject>({
    thoughts: thoughts.length === 0 ? undefined : thoughts.map(carriedThought),
    call: call?.signature,
  });
  const provenance = maker?.provenance ?? { providerId: "" };
  return Buffer.from(sealWithProvenance(JSON.stringify(carried), provenance)).toString("base64");
}

const carriedThought = ({ text, summary, signature, encrypted, id, format }: ReasoningPart) =>
  withoutUndefined<JsonObject>({ text, summary, signature, encrypted, id, format });

/** Returns whether a signature carries seals of another vendor. */
export const isCarried = (signature: unknown): boolean =>
  typeof signature === "string" && carriedStart.test(signature);

/**
 * Reads the seals that a thought signature carries; undefined for Google's own. Clients in Python
 * write base64 with the letters for addresses.
 */
export function openSeals(signature: string): CarriedSeals | undefined {
  if (!isCarried(signature)) return undefined;
  const { seal, provenance } = openProvenance(Buffer.from(signature, "base64").toString("utf8"));
  if (provenance === undefined) return undefined;
  const maker = provenance.providerId === "" ? {} : { provenance };
  const carried = parsedObject(seal);
  if (carried === undefined) return undefined;
  const call = asString(carried.call);
  return {
    thoughts: (asArray(carried.thoughts) ?? []).flatMap((thought) => {
      const fields = asObject(thought);
      return fields === undefined ? [] : [readThought(fields, maker)];
    }),
    ...(call !== undefined && { call: { signature: call, ...maker } }),
  };
}

function parsedObject(text: string): JsonObject | undefined {
  try {
    return asObject(JSON.parse(text));
  } catch {
    return undefined;
  }
}

function readThought(fields: JsonObject, maker: Pick<ReasoningPart, "provenance">): ReasoningPart {
  const summary = asArray(fields.summary)?.map(String);
  return withoutUndefined<ReasoningPart>({
    type: "reasoning",
    text: asString(fields.text),
    summary,
    signature: asString(fields.signature),
    encrypted: asString(fields.encrypted),
    id: asString(fields.id),
    format: asString(fields.format),
    provenance: maker.provenance,
  });
}
