import type { GatewayProcess } from "../../../support/process.ts";
import { postChat } from "./ask.ts";
import { chargeOf, chargeParser, type SeenCharge } from "./seen-charge.ts";

/** Requests that run against a gateway for as long as it answers. */
export interface Load {
  /** Charges in the order in which clients saw them. */
  readonly seen: readonly SeenCharge[];
  /** Resolves when so many charges were seen. */
  hasSeen(count: number): Promise<void>;
  /**
   * Resolves when no client is at work any more; rejects if one met an answer that is no charge.
   */
  gone: Promise<void>;
}

/**
 * Has clients send one request after the other, every second one streamed, until the gateway is
 * gone.
 */
export function loadUntilGone(gateway: GatewayProcess, { clients }: { clients: number }): Load {
  const seen: SeenCharge[] = [];
  const waiters: { count: number; resolve: () => void }[] = [];
  const see = (charge: SeenCharge): void => {
    seen.push(charge);
    for (const { count, resolve } of waiters) if (count === seen.length) resolve();
  };
  const gone = Promise.all(
    Array.from({ length: clients }, (_, client) => askUntilGone(gateway, { client, see })),
  );
  return {
    seen,
    hasSeen: (count) =>
      new Promise((resolve) => {
        if (seen.length >= count) resolve();
        else waiters.push({ count, resolve });
      }),
    gone: gone.then(() => undefined),
  };
}

async function askUntilGone(
  gateway: GatewayProcess,
  { client, see }: { client: number; see: (charge: SeenCharge) => void },
): Promise<void> {
  for (let ordinal = client; ; ordinal += 1) {
    const stream = ordinal % 2 === 0;
    let response: Response;
    try {
      response = await postChat(gateway, { stream });
    } catch {
      return;
    }
    if (response.status !== 200)
      throw new Error(`status ${response.status}: ${await response.text()}`);
    if (!(await (stream ? readStream(response, see) : readWhole(response, see)))) return;
  }
}

/** Reads events as they come; false when the gateway went away in the middle. */
async function readStream(response: Response, see: (charge: SeenCharge) => void): Promise<boolean> {
  const parser = chargeParser(see);
  const decoder = new TextDecoder();
  try {
    for await (const chunk of response.body ?? [])
      parser.feed(decoder.decode(chunk, { stream: true }));
    return true;
  } catch {
    return false;
  }
}

async function readWhole(response: Response, see: (charge: SeenCharge) => void): Promise<boolean> {
  let completion: unknown;
  try {
    completion = await response.json();
  } catch {
    return false;
  }
  const charge = chargeOf(completion);
  if (charge === undefined)
    throw new Error(`an answer without its charge: ${JSON.stringify(completion)}`);
  see(charge);
  return true;
}
