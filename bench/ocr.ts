import { rmSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { chatLatencies, type MeasuredChat, type Neighbour } from "./ocr/chat-latency.ts";
import { extract, type OcrTarget } from "./ocr/extract.ts";
import { knownFiles } from "./ocr/pages.ts";
import { wordErrors, wordsOf } from "./ocr/word-errors.ts";
import { gateway } from "./peers/gateway.ts";
import { Children, waitForLine } from "./process/children.ts";
import { alignedTable } from "./report.ts";

/** What may be read wrongly of a clean page. */
const wordErrorMax = 0.02;

const flag = { type: "boolean", default: false } as const;
const { values: options } = parseArgs({ options: { pages: flag, chat: flag } });

/** A row at once: reading takes a while. */
const printRow = ([kind = "", ...cells]: readonly string[]): void =>
  console.log(kind.padEnd(34) + cells.map((cell) => cell.padStart(17)).join(""));

/** Reads every generated file and prints how many of its words came out wrong. */
async function reportWordErrors(target: OcrTarget): Promise<void> {
  printRow(["file", "words", "wrong", "word error rate", "seconds"]);
  let worst = 0;
  for (const { kind, bytes, words } of await knownFiles()) {
    const startedAtMs = performance.now();
    const { status, text } = await extract(target, bytes);
    const seconds = (performance.now() - startedAtMs) / 1_000;
    if (status !== 200) throw new Error(`${kind} was answered with ${status}`);
    const wrong = wordErrors(words, wordsOf(text));
    worst = Math.max(worst, wrong / words.length);
    printRow([
      kind,
      String(words.length),
      String(wrong),
      `${((100 * wrong) / words.length).toFixed(2)} %`,
      seconds.toFixed(2),
    ]);
  }
  console.log(
    `\nthe worst file has ${(100 * worst).toFixed(2)} % of its words wrong; the bar is ${100 * wordErrorMax} %\n`,
  );
  process.exitCode = worst > wordErrorMax ? 1 : 0;
}

const besides: Readonly<Record<Neighbour, string>> = {
  nothing: "nothing",
  hostile: "hostile files, four at once",
  pages: "pages being read, four at once",
};

async function reportLatencies(measured: MeasuredChat): Promise<void> {
  const latencies = await chatLatencies(measured);
  console.log(
    alignedTable([
      ["chat at 50 requests a second beside", "p50 ms", "p99 ms", "requests", "files meanwhile"],
      ...latencies.map(({ neighbour, p50Ms, p99Ms, requests, files }) => [
        besides[neighbour],
        p50Ms.toFixed(2),
        p99Ms.toFixed(2),
        String(requests),
        String(files),
      ]),
    ]),
  );
}

async function main(): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), "switchyard-bench-"));
  const children = new Children(directory);
  try {
    const mockPath = fileURLToPath(new URL("./mock-upstream.ts", import.meta.url));
    const mock = children.spawn({ name: "mock", command: [process.execPath, mockPath] });
    const [, mockPort] = await waitForLine(mock, {
      pattern: /^mock ready (\d+)$/,
      timeoutMs: 10_000,
    });
    const peer = gateway("process");
    // Not pinned: the converters are to find every core of the machine, as they do elsewhere.
    const { port } = await peer.start({
      children,
      cores: {},
      directory,
      mock: { port: Number(mockPort), child: mock },
    });
    if (!options.chat)
      await reportWordErrors({ url: `http://127.0.0.1:${port}`, headers: peer.headers });
    const key = peer.headers["authorization"]?.replace("Bearer ", "") ?? "";
    if (!options.pages) await reportLatencies({ children, port, key });
  } finally {
    await children.stopAll();
    rmSync(directory, { recursive: true, force: true });
  }
}

await main();
