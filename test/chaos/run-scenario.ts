import { standingBooks } from "../end-to-end/process/support/standing-books.ts";
import { openHolds, untilIdle } from "../end-to-end/process/support/expect-nothing-held.ts";
import { postChat } from "../end-to-end/process/support/ask.ts";
import { chargeIn, type SeenCharge } from "../end-to-end/process/support/seen-charge.ts";
import { startNodes } from "../end-to-end/nodes/support/nodes.ts";
import { chatAnswer } from "../support/upstream/healthy-chat.ts";
import type { ChaosParts, Scenario } from "./scenarios.ts";

/** What one scenario did to clients and to the books. */
export interface ChaosResult {
  name: string;
  asked: number;
  served: number;
  /** Answers with a 5xx status. */
  failed: number;
  /** Connections that ended before an answer did. */
  broken: number;
  /** From the end of the fault to the first of twenty answers that were served in a row. */
  secondsToNormal: number;
  /** Charges that a client was shown and that do not stand. */
  lost: number;
  /** Charges that stand twice, or otherwise than they were shown. */
  double: number;
  /** Whole answers without a charge. */
  free: number;
  /** Charges that were booked to the operator. */
  uncollected: number;
  /** Holds that are left once nothing is under way. */
  stuckHolds: number;
}

const usage = { prompt_tokens: 20, completion_tokens: 10, total_tokens: 30 };
const normalInRow = 20;
const clientCount = 8;

/** What clients met, counted as it comes. */
class Load {
  readonly seen: SeenCharge[] = [];
  asked = 0;
  served = 0;
  failed = 0;
  broken = 0;
  free = 0;
  private inRow = 0;
  private normal: (() => void) | undefined;
  private isOver = false;
  private readonly parts: ChaosParts;
  private readonly clients: Promise<unknown>;

  constructor(parts: ChaosParts) {
    this.parts = parts;
    this.clients = Promise.all(
      Array.from({ length: clientCount }, (_, index) => this.askOnAndOn(index)),
    );
  }

  /** Resolves once so many answers in a row were served from now on. */
  untilNormal(): Promise<void> {
    this.inRow = 0;
    return new Promise((resolve) => (this.normal = resolve));
  }

  async end(): Promise<void> {
    this.isOver = true;
    await this.clients;
  }

  private async askOnAndOn(client: number): Promise<void> {
    for (let turn = client; !this.isOver; turn += 1) {
      const gateway = this.parts.gateways[turn % this.parts.gateways.length];
      if (gateway === undefined) continue;
      this.asked += 1;
      try {
        const response = await postChat(gateway, { stream: turn % 3 === 0 });
        this.count(response.status, await response.text());
      } catch {
        this.broken += 1;
        this.inRow = 0;
      }
    }
  }

  private count(status: number, text: string): void {
    const charges = chargeIn(text);
    this.seen.push(...charges);
    if (status === 200 && charges.length > 0) {
      this.served += 1;
      this.inRow += 1;
      if (this.inRow >= normalInRow) this.normal?.();
      return;
    }
    this.inRow = 0;
    if (status >= 500 || (status === 200 && text.includes('"error"'))) this.failed += 1;
    else if (status === 200) this.free += 1;
  }
}

/** Runs one scenario on two gateways of its own, and closes their books. */
export async function runScenario(scenario: Scenario): Promise<ChaosResult> {
  const nodes = await startNodes({ credits: "1000" });
  try {
    nodes.upstream.script((request) => chatAnswer(request, { usage }));
    const parts: ChaosParts = {
      nodes,
      databaseUrl: nodes.databaseUrl,
      gateways: [...nodes.gateways],
    };
    const load = new Load(parts);
    await load.untilNormal();
    const mend = await scenario.breaks(parts);
    await mend();
    const mendedMs = performance.now();
    await load.untilNormal();
    const secondsToNormal = Math.round((performance.now() - mendedMs) / 100) / 10;
    await load.end();
    await Promise.all(parts.gateways.map(untilIdle));
    const { charges } = await standingBooks({ options: {}, query: nodes.query });
    const standing = load.seen.filter(({ generationId }) => charges.has(generationId));
    const ids = new Set(load.seen.map(({ generationId }) => generationId));
    const uncollected = await nodes.query(
      "select count(*) as count from transfers where kind = 'uncollected'",
    );
    const holds = await Promise.all(parts.gateways.map(openHolds));
    return {
      name: scenario.name,
      asked: load.asked,
      served: load.served,
      failed: load.failed,
      broken: load.broken,
      secondsToNormal,
      lost: load.seen.length - standing.length,
      double:
        load.seen.length -
        ids.size +
        standing.filter(({ generationId, costNano }) => charges.get(generationId) !== costNano)
          .length,
      free: load.free,
      uncollected: Number(uncollected[0]?.["count"]),
      stuckHolds: holds.reduce((sum, count) => sum + count, 0),
    };
  } finally {
    await Promise.all(nodes.gateways.map((gateway) => gateway.kill9()));
    await nodes.stop();
  }
}
