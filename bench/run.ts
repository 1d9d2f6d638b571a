import { rmSync } from "node:fs";
import { mkdir, mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { runBooks } from "./books/run-books.ts";
import { describeMachine, isInMemory } from "./machine.ts";
import { direct } from "./peers/direct.ts";
import { floor } from "./peers/floor.ts";
import { gateway } from "./peers/gateway.ts";
import { gomodel } from "./peers/gomodel.ts";
import { litellm } from "./peers/litellm.ts";
import { nginx } from "./peers/nginx.ts";
import type { Peer } from "./peers/peer.ts";
import { portkey } from "./peers/portkey.ts";
import { tensorzero } from "./peers/tensorzero.ts";
import { Children } from "./process/children.ts";
import { assignCores } from "./process/cores.ts";
import { failureLines, reportText } from "./report.ts";
import { runBenchmark } from "./run-benchmark.ts";
import { adjustedPlan, fullPlan, quickPlan } from "./scenarios.ts";

const usage = `npm run bench -- [--quick] [--json FILE] [--peers direct,gateway,floor,nginx,portkey,gomodel,litellm,tensorzero]
    [--rounds NUMBER] [--scenario NAME]... [--entry FILE] [--before DIRECTORY]
npm run bench -- --books [--requests NUMBER] [--peers gateway,gomodel,litellm]
  --quick   the main figures once, in under a minute
  --json    where the figures go; bench/results/<time>.json otherwise
  --peers   only those whose names begin so; "direct" is always among them, gomodel, litellm and tensorzero only where they are named
  --rounds  how often each scenario is measured in place of the plan's three times (once with --quick)
  --scenario  only those whose names begin so, such as "1 KB"; may be given several times
  --entry   another program to measure in place of src/main.ts
  --before  a checkout of another release, with its packages, to measure in turns with this one
  --books   kill -9 each gateway three times in so many requests (2,000), and compare its books with the answers`;

const { values: options } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    json: { type: "string" },
    peers: { type: "string", default: "" },
    rounds: { type: "string" },
    scenario: { type: "string", multiple: true, default: [] },
    entry: { type: "string", default: "src/main.ts" },
    before: { type: "string" },
    books: { type: "boolean", default: false },
    requests: { type: "string", default: "2000" },
    help: { type: "boolean", default: false },
  },
});

const durabilities = ["power", "process"] as const;

function selectedPeers(): Peer[] {
  const wanted = options.peers
    .split(",")
    .map((name) => name.trim().toLowerCase())
    .filter((name) => name !== "");
  const before = options.before === undefined ? [] : [resolve(options.before)];
  const mayInstall = !options.quick;
  const known = [
    direct,
    ...durabilities.map((durability) => gateway(durability, { entry: options.entry })),
    ...durabilities.map((durability) => floor(durability)),
    ...before.flatMap((directory) =>
      durabilities.map((durability) => gateway(durability, { name: "before", directory })),
    ),
    nginx,
    portkey({ mayInstall }),
  ];
  const onlyNamed = [gomodel, litellm({ mayInstall }), tensorzero({ mayInstall })];
  const isNamed = ({ name }: Peer): boolean => wanted.some((each) => name.startsWith(each));
  return [
    ...known.filter((peer) => peer === direct || wanted.length === 0 || isNamed(peer)),
    ...onlyNamed.filter(
      (peer) => isNamed(peer) || (options.books && wanted.length === 0 && peer.books !== undefined),
    ),
  ];
}

async function main(): Promise<void> {
  const resultsDirectory = fileURLToPath(new URL("./results/", import.meta.url));
  await mkdir(resultsDirectory, { recursive: true });
  // A data directory in memory would make durable commits free.
  const directory = await mkdtemp(
    join(isInMemory(tmpdir()) ? resultsDirectory : tmpdir(), "switchyard-bench-"),
  );
  const children = new Children(directory);
  const interruption = { happened: false };
  const cleanUp = async (): Promise<void> => {
    await children.stopAll();
    rmSync(directory, { recursive: true, force: true });
  };
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => {
      interruption.happened = true;
      void cleanUp().finally(() => process.exit(130));
    });
  }
  try {
    if (options.books) await closeBooks({ directory, children });
    else await measureAndReport({ directory, resultsDirectory, children, interruption });
  } finally {
    await cleanUp();
  }
}

/** Fails where a gateway of this project has lost a charge or has one twice. */
async function closeBooks({ directory, children }: Pick<Run, "directory" | "children">) {
  const isExact = await runBooks({
    peers: selectedPeers(),
    requests: Number(options.requests),
    directory,
    children,
    report: (text) => console.log(text),
  });
  if (!isExact) process.exitCode = 1;
}

interface Run {
  directory: string;
  resultsDirectory: string;
  children: Children;
  interruption: { happened: boolean };
}

async function measureAndReport({
  directory,
  resultsDirectory,
  children,
  interruption,
}: Run): Promise<void> {
  const startedAt = new Date();
  const plan = adjustedPlan(options.quick ? quickPlan : fullPlan, {
    rounds: options.rounds === undefined ? undefined : Number(options.rounds),
    names: options.scenario,
  });
  const cores = assignCores();
  const machine = describeMachine(directory);
  const peers = await runBenchmark({
    plan,
    peers: selectedPeers(),
    children,
    cores,
    directory,
    report: (text) => console.error(`bench: ${text}`),
  });
  if (interruption.happened) return;
  console.log(
    [
      machine.cpu,
      `${machine.cores} cores`,
      machine.system,
      `Bun ${machine.bun}`,
      machine.commit,
    ].join(", "),
  );
  if (cores.peer === undefined)
    console.log("Nothing could be pinned to a core: the figures are rough.");
  if (machine.dataInMemory)
    console.log("The data directory lies in memory: durable commits cost nothing here.");
  console.log(`\n${reportText(peers)}`);
  for (const line of failureLines(peers)) console.log(line);
  const time = startedAt.toISOString().slice(0, 19);
  const file = options.json ?? join(resultsDirectory, `${time.replaceAll(":", "-")}.json`);
  await mkdir(dirname(file), { recursive: true });
  const seconds = Math.round((Date.now() - startedAt.getTime()) / 1000);
  const figures = { startedAt: `${time}Z`, seconds, machine, cores, plan, peers };
  await writeFile(file, `${JSON.stringify(figures, null, 2)}\n`);
  console.error(`bench: ${seconds} s; figures in ${file}`);
}

if (options.help) console.log(usage);
else await main();
process.exit();
