import { rmSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Children } from "./process/children.ts";
import { alignedTable } from "./report.ts";
import { median } from "./results.ts";
import { codecCostOf } from "./translation-codec.ts";
import { startMeasuredGateway } from "./translation-gateway.ts";
import { clients, upstreams, type ClientName, type UpstreamName } from "./translation-work.ts";

/**
 * What translation may cost: so many times the CPU of the passthrough of a chat client's 1 KB to a
 * chat upstream.
 */
const bar = 1.5;
/**
 * Slices of each pair that count, after those in which compilers learn: a pair gets a twelfth of
 * the requests that passthrough gets, and its code has to be as well compiled.
 */
const rounds = 8;
const warmingRounds = 12;

const { values: options } = parseArgs({
  options: {
    /** Leaves the gateway out. */
    codec: { type: "boolean", default: false },
    /** Pairs to measure, as `client/upstream`; all where none is named. */
    pair: { type: "string", multiple: true, default: [] },
  },
});

/** CPU a request, in microseconds. */
interface Cost {
  whole: number;
  stream: number;
}

/**
 * The figures of a pair: what it costs, and how many times what passthrough cost right before it.
 */
interface Row {
  client: ClientName;
  upstream: UpstreamName;
  cost: Cost;
  ratio: Cost;
}

const isAsked = (pair: string): boolean => options.pair.length === 0 || options.pair.includes(pair);

const medians = (costs: readonly Cost[]): Cost => ({
  whole: median(costs.map(({ whole }) => whole)),
  stream: median(costs.map(({ stream }) => stream)),
});

/**
 * Every pair in turns, each slice after one of passthrough, so that a machine that grows slower or
 * faster meanwhile does so to both; the medians. The ratio of passthrough to itself tells how rough
 * the others are.
 */
async function rowsOf(
  measurementOf: (client: ClientName, upstream: UpstreamName) => () => Promise<Cost>,
): Promise<Row[]> {
  const passthrough = measurementOf("openai-chat", "openai-chat");
  const measured = clients.flatMap((client) =>
    upstreams
      .filter((upstream) => isAsked(`${client}/${upstream}`))
      .map((upstream) => ({
        client,
        upstream,
        measure: measurementOf(client, upstream),
        costs: [] as Cost[],
        ratios: [] as Cost[],
      })),
  );
  for (let round = 0; round < warmingRounds + rounds; round += 1) {
    for (const { measure, costs, ratios } of measured) {
      const base = await passthrough();
      const cost = await measure();
      if (round < warmingRounds) continue;
      costs.push(cost);
      ratios.push({ whole: cost.whole / base.whole, stream: cost.stream / base.stream });
    }
  }
  return measured.map(({ client, upstream, costs, ratios }) => ({
    client,
    upstream,
    cost: medians(costs),
    ratio: medians(ratios),
  }));
}

/** Prints the rows; gives the dearest of them. */
function report(title: string, rows: readonly Row[]): Cost {
  console.log(`\n${title}`);
  console.log(
    alignedTable([
      ["client", "upstream", "whole us", "ratio", "stream us", "ratio"],
      ...rows.map(({ client, upstream, cost, ratio }) => [
        client,
        upstream,
        cost.whole.toFixed(1),
        ratio.whole.toFixed(2),
        cost.stream.toFixed(0),
        ratio.stream.toFixed(2),
      ]),
    ]),
  );
  return {
    whole: Math.max(...rows.map(({ ratio }) => ratio.whole)),
    stream: Math.max(...rows.map(({ ratio }) => ratio.stream)),
  };
}

async function main(): Promise<void> {
  report(
    "reading and writing alone, CPU a request (1 KB asked; 700 bytes or 100 events answered)",
    await rowsOf(codecCostOf),
  );
  if (options.codec) return;
  const directory = await mkdtemp(join(tmpdir(), "switchyard-bench-"));
  const children = new Children(directory);
  try {
    const gateway = await startMeasuredGateway(children, directory);
    const rows = await rowsOf((client, upstream) => async () => ({
      whole: await gateway.cpuUs(client, upstream, { stream: false, times: 480 }),
      stream: await gateway.cpuUs(client, upstream, { stream: true, times: 64 }),
    }));
    await gateway.stop();
    const worst = report("the whole gateway, CPU a request", rows);
    console.log(
      `\nthe dearest translation costs ${worst.whole.toFixed(2)} times the passthrough of a whole answer, ` +
        `and ${worst.stream.toFixed(2)} times that of a stream; the bar for whole answers is ${bar}`,
    );
    process.exitCode = worst.whole > bar ? 1 : 0;
  } finally {
    await children.stopAll();
    rmSync(directory, { recursive: true, force: true });
  }
}

await main();
