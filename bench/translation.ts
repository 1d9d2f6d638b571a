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

/** What translation may cost: so many times the CPU of the passthrough of a chat client's 1 KB to a chat upstream. */
const bar = 1.5;
const rounds = 5;

const { values: options } = parseArgs({ options: { codec: { type: "boolean", default: false } } });

/** The figures of a pair, in microseconds of CPU a request. */
interface Row {
  client: ClientName;
  upstream: UpstreamName;
  whole: number;
  stream: number;
}

type Cost = Omit<Row, "client" | "upstream">;

/** The median of rounds in which every pair has its turn, after one that warms all of them up. */
async function rowsOf(measurementOf: (client: ClientName, upstream: UpstreamName) => () => Promise<Cost>): Promise<Row[]> {
  const measured = clients.flatMap((client) => upstreams.map((upstream) =>
    ({ client, upstream, measure: measurementOf(client, upstream), figures: [] as Cost[] })));
  for (let round = 0; round <= rounds; round += 1) {
    for (const { measure, figures } of measured) {
      const cost = await measure();
      if (round > 0) figures.push(cost);
    }
  }
  return measured.map(({ client, upstream, figures }) =>
    ({ client, upstream, whole: median(figures.map(({ whole }) => whole)), stream: median(figures.map(({ stream }) => stream)) }));
}

function report(title: string, rows: readonly Row[]): number {
  const base = rows.find(({ client, upstream }) => client === "openai-chat" && upstream === "openai-chat") ?? rows[0];
  const ratio = (value: number, of: number | undefined): string => (value / (of ?? Number.NaN)).toFixed(2);
  console.log(`\n${title}`);
  console.log(alignedTable([
    ["client", "upstream", "whole us", "ratio", "stream us", "ratio"],
    ...rows.map(({ client, upstream, whole, stream }) => [
      client, upstream, whole.toFixed(1), ratio(whole, base?.whole), stream.toFixed(0), ratio(stream, base?.stream),
    ]),
  ]));
  return Math.max(...rows.map(({ whole }) => whole / (base?.whole ?? Number.NaN)));
}

async function main(): Promise<void> {
  report("reading and writing alone, CPU a request (1 KB asked; 700 bytes or 100 events answered)", await rowsOf(codecCostOf));
  if (options.codec) return;
  const directory = await mkdtemp(join(tmpdir(), "switchyard-bench-"));
  const children = new Children(directory);
  try {
    const gateway = await startMeasuredGateway(children, directory);
    const rows = await rowsOf((client, upstream) => async () => ({
      whole: await gateway.cpuUs(client, upstream, { stream: false, times: 1_600 }),
      stream: await gateway.cpuUs(client, upstream, { stream: true, times: 240 }),
    }));
    await gateway.stop();
    const worst = report("the whole gateway, CPU a request", rows);
    console.log(`\nthe dearest translation of a whole answer costs ${worst.toFixed(2)} times the passthrough; the bar is ${bar}`);
    process.exitCode = worst > bar ? 1 : 0;
  } finally {
    await children.stopAll();
    rmSync(directory, { recursive: true, force: true });
  }
}

await main();
