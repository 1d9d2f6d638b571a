import { expect } from "bun:test";
import type { GatewayProcess } from "../../../support/process.ts";
import { numberAt } from "../../api/at.ts";
import { getJson, postChat } from "./ask.ts";
import { chargeOf, type SeenCharge } from "./seen-charge.ts";

/** Open holds by the gateway's own count. */
export async function openHolds({ url }: GatewayProcess): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  return Number(/^\S*holds_open (\d+)$/m.exec(text)?.[1] ?? Number.NaN);
}

/** The gateway shows this balance and lends all of it to one request, whose charge is the result. */
export async function expectNothingHeld(gateway: GatewayProcess, balanceNano: bigint): Promise<SeenCharge> {
  expect(await openHolds(gateway)).toBe(0);
  const balance = numberAt(await getJson(gateway, "/credits"), "balance");
  expect(Math.round(balance * 1e6)).toBe(Math.round(Number(balanceNano) / 1e3));
  const response = await postChat(gateway, { max_tokens: 1_000_000_000 });
  const text = await response.text();
  expect([response.status, text]).toEqual([200, text]);
  const charge = chargeOf(JSON.parse(text));
  if (charge === undefined) throw new Error(`an answer without its charge: ${text}`);
  const generation = await getJson(gateway, `/generation/${charge.generationId}`);
  expect(Math.round(numberAt(generation, "data.hold.reserved_usd") * 1e9)).toBe(Number(balanceNano));
  expect(numberAt(generation, "data.total_cost")).toBe(Number(charge.costNano) / 1e9);
  expect(await openHolds(gateway)).toBe(0);
  return charge;
}
