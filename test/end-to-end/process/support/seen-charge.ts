import { createParser } from "eventsource-parser";
import { at } from "../../api/at.ts";

/** A charge that a client was shown. */
export interface SeenCharge {
  generationId: string;
  costNano: bigint;
}

/**
 * The charge that a chat completion or a chunk of one shows; none while its usage is still to come.
 */
export function chargeOf(completion: unknown): SeenCharge | undefined {
  const [id, cost] = [at(completion, "id"), at(completion, "usage.cost")];
  if (cost === undefined) return undefined;
  if (typeof id !== "string" || typeof cost !== "number")
    throw new Error(`a charge without id or amount: ${JSON.stringify(completion)}`);
  return {
    generationId: id.replace(/^chatcmpl-/, "gen_"),
    costNano: BigInt(Math.round(cost * 1e9)),
  };
}

/** The charges that a body shows, whole or streamed; one at most, if the gateway is right. */
export function chargeIn(text: string): SeenCharge[] {
  if (text.startsWith("{")) return [chargeOf(JSON.parse(text)) ?? []].flat();
  const charges: SeenCharge[] = [];
  const parser = chargeParser((charge) => charges.push(charge));
  parser.feed(text);
  return charges;
}

/** Reads an event stream as it comes and tells each charge at once. */
export const chargeParser = (onCharge: (charge: SeenCharge) => void) =>
  createParser({
    onEvent({ data }) {
      const charge = data === "[DONE]" ? undefined : chargeOf(JSON.parse(data));
      if (charge !== undefined) onCharge(charge);
    },
  });
