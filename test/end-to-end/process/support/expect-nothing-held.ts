import { expect } from "bun:test";
import { pollUntil } from "../../../support/poll-until.ts";
import { numberAt } from "../../api/at.ts";
import { type AskedGateway, getJson, postChat } from "./ask.ts";
import { chargeOf, type SeenCharge } from "./seen-charge.ts";

/** Gauges of the gateway by the ends of their names. */
async function gauges<Name extends string>(
  { url }: AskedGateway,
  names: readonly Name[],
): Promise<number[]> {
  const text = await (await fetch(`${url}/metrics`)).text();
  return names.map((name) =>
    Number(new RegExp(`^\\S*${name} (\\d+)$`, "m").exec(text)?.[1] ?? Number.NaN),
  );
}

/** Open holds by the gateway's own count. */
export async function openHolds(gateway: AskedGateway): Promise<number> {
  const [holds = Number.NaN] = await gauges(gateway, ["holds_open"]);
  return holds;
}

/** Waits until every charge that the database had refused is in the books. */
export async function untilUncollectedIsBooked(gateway: AskedGateway): Promise<void> {
  await pollUntil(async () => (await gauges(gateway, ["uncollected_charges_waiting"]))[0] === 0);
}

/**
 * Connections are accepted in one turn of the gateway's event loop and read in the next; an answer
 * of a third has seen both.
 */
const turnsUntilRead = 3;
/** Pause while something is under way, which leaves the cores to that. */
const restMs = 10;

/**
 * Waits until everything that was sent to the gateway so far is over and in the books: no request
 * is under way but the one that asks, none holds credits, and no charge waits for its commit,
 * however often it is asked within the turns that reading takes.
 */
export async function untilIdle(gateway: AskedGateway): Promise<void> {
  for (let quiet = 0; quiet < turnsUntilRead; ) {
    const [inFlight, holds, commits] = await gauges(gateway, [
      "requests_in_flight",
      "holds_open",
      "commit_queue_pending",
    ]);
    const isQuiet = inFlight === 1 && holds === 0 && commits === 0;
    quiet = isQuiet ? quiet + 1 : 0;
    if (!isQuiet) await Bun.sleep(restMs);
  }
}

/**
 * The gateway shows this balance and holds an eighth of it for one large request, whose charge is
 * the result.
 */
export async function expectNothingHeld(
  gateway: AskedGateway,
  balanceNano: bigint,
): Promise<SeenCharge> {
  expect(await openHolds(gateway)).toBe(0);
  const balance = numberAt(await getJson(gateway, "/credits"), "balance");
  expect(Math.round(balance * 1e6)).toBe(Math.round(Number(balanceNano) / 1e3));
  const response = await postChat(gateway, { max_tokens: 1_000_000_000 });
  const text = await response.text();
  expect([response.status, text]).toEqual([200, text]);
  const charge = chargeOf(JSON.parse(text));
  if (charge === undefined) throw new Error(`an answer without its charge: ${text}`);
  const generation = await getJson(gateway, `/generation/${charge.generationId}`);
  expect(
    Math.abs(numberAt(generation, "data.hold.reserved_usd") * 1e9 - Number(balanceNano) / 8),
  ).toBeLessThan(1);
  expect(numberAt(generation, "data.total_cost")).toBe(Number(charge.costNano) / 1e9);
  expect(await openHolds(gateway)).toBe(0);
  return charge;
}
