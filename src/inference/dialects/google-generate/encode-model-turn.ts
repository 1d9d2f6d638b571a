import type { JsonObject, JsonValue } from "../../canonical/json.ts";
import type { AssistantMessage, AssistantPart } from "../../canonical/message.ts";
import {
  isForeignReasoning,
  openProvenance,
  type ReasoningPart,
} from "../../canonical/reasoning.ts";
import type { ToolCallPart } from "../../canonical/tool.ts";
import { asObject } from "../request-fields.ts";
import { encodeImage, textParts } from "./encode-parts.ts";
import type { GeminiPlace, GeminiState } from "./encode-state.ts";

/**
 * What stands for a signature that nobody has: the call was made by another model, or its client did
 * not keep the signature. Source: ai.google.dev/gemini-api/docs/thought-signatures, "FAQ" (2026-11).
 */
const noSignature = "skip_thought_signature_validator";

/** A turn of the model as Gemini's parts, with the seals that are Gemini's own. */
export function encodeModelTurn(message: AssistantMessage, place: GeminiPlace): JsonObject[] {
  place.loseDecoration(message);
  const turn = new TurnEncoder(place.state);
  message.parts.forEach((part, index) =>
    turn.add(part, { place: place.at(`.content[${index}]`), next: message.parts[index + 1] }),
  );
  return turn.finish();
}

/** Puts seals onto the parts they belong to: Gemini has no part for a seal alone. */
class TurnEncoder {
  private readonly state: GeminiState;
  private readonly parts: Record<string, JsonValue | undefined>[] = [];
  /** A seal that waits for the part after it. */
  private seal: string | undefined;
  private hasCalls = false;

  constructor(state: GeminiState) {
    this.state = state;
  }

  add(
    part: AssistantPart,
    { place, next }: { place: GeminiPlace; next: AssistantPart | undefined },
  ): void {
    switch (part.type) {
      case "text":
        place.loseDecoration(part);
        this.push(textParts(part.text), this.ownTextSeal(part.signature));
        break;
      case "refusal":
        this.push(textParts(part.refusal));
        break;
      case "reasoning":
        this.addThought(part, { place, next });
        break;
      case "tool-call":
        this.addCall(part, place);
        break;
      case "image":
        if (part.source.type === "base64") this.push([encodeImage(part, place)]);
        else place.lose("Gemini takes back the bytes of its images only");
        break;
      case "audio-output":
        place.lose("Gemini takes no sound in its own turns");
        this.push(textParts(part.transcript ?? ""));
        break;
      case "opaque":
        if (part.dialect === "google-generate") this.push([part.value]);
        else place.lose(`a ${String(part.value.type)} of ${part.dialect}`);
    }
  }

  finish(): JsonObject[] {
    if (this.seal !== undefined) this.stampLast(this.seal);
    return this.parts;
  }

  private push(parts: readonly JsonObject[], seal: string | undefined = this.seal): void {
    for (const part of parts) {
      this.parts.push({ ...part, ...(seal !== undefined && { thoughtSignature: seal }) });
      if (seal === this.seal) this.seal = undefined;
    }
  }

  private stampLast(seal: string): boolean {
    const last = this.parts.at(-1);
    if (last === undefined || last.thoughtSignature !== undefined) return false;
    last.thoughtSignature = seal;
    return true;
  }

  private ownTextSeal(sealed: string | undefined): string | undefined {
    if (sealed === undefined) return undefined;
    const { seal, provenance } = openProvenance(sealed);
    return provenance?.providerId === this.state.options.providerId ? seal : undefined;
  }

  private addThought(
    part: ReasoningPart,
    { place, next }: { place: GeminiPlace; next: AssistantPart | undefined },
  ): void {
    const isOwn = part.provenance?.providerId === this.state.options.providerId;
    const seal = isOwn ? part.signature : undefined;
    if (part.text && seal !== undefined) {
      this.push([{ text: part.text, thought: true }], seal);
    } else if (seal !== undefined) {
      // The seal of a text stands after it, that of a call before it.
      const belongsToNext = next?.type === "tool-call" && next.signature === undefined;
      if (belongsToNext || !this.stampLast(seal)) this.seal = seal;
    } else {
      const isSealed = part.signature !== undefined || part.encrypted !== undefined;
      place.lose(
        isSealed ? "sealed by another provider" : "Gemini takes back sealed thoughts only",
      );
    }
  }

  private addCall(call: ToolCallPart, place: GeminiPlace): void {
    place.loseDecoration({ cache: call.cache, extensions: call.extensions });
    const { traits, namer } = this.state;
    const isForeign =
      call.signature !== undefined && isForeignReasoning(call, this.state.options.providerId);
    if (isForeign) place.at(".signature").lose("sealed by another provider");
    const own = isForeign ? undefined : call.signature;
    const isFirst = !this.hasCalls;
    this.hasCalls = true;
    this.push(
      [
        {
          functionCall: {
            ...(traits.callIds && { id: call.id }),
            name: this.state.wireName(call),
            args: namer.wraps(call) ? { input: call.arguments } : parsedArguments(call.arguments),
          },
        },
      ],
      own ?? this.seal ?? (isFirst && traits.needsSignatures ? noSignature : undefined),
    );
  }
}

/** Arguments as the object that Gemini wants; text that is none is kept as it is. */
function parsedArguments(text: string): JsonObject {
  if (text.trim() === "") return {};
  try {
    return asObject(JSON.parse(text)) ?? { _raw: text };
  } catch {
    return { _raw: text };
  }
}
