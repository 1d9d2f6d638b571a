import { afterEach, expect, test } from "bun:test";
import { fileURLToPath } from "node:url";
import type { ConversionTask } from "./converter-messages.ts";
import { ConverterPool, type ConverterPoolOptions } from "./converter-pool.ts";

const script = fileURLToPath(
  new URL("../../../test/support/documents/scripted-child.ts", import.meta.url),
);
const limits = { pixelsMax: 1, pagesMax: 1, scannedPagesMax: 1, charactersMax: 1 };

/** A file that makes its child do something; any other text has it answer with its process id. */
const file = (act: string): ConversionTask => ({
  format: "pdf",
  bytes: new TextEncoder().encode(`%PDF-${act}`),
  limits,
});

let pool: ConverterPool;
/** The options of `pool`, which it reads for each file. */
let options: ConverterPoolOptions;
afterEach(() => pool.close());

function open(changes: Partial<ConverterPoolOptions> = {}): ConverterPool {
  options = {
    script,
    childrenMax: 1,
    waitingMax: 8,
    silenceMs: 20_000,
    totalMs: 20_000,
    idleMs: 20_000,
    filesPerChildMax: 100,
    memoryKibMax: 4_000_000,
    ...changes,
  };
  return (pool = new ConverterPool(options));
}

/** The process that a file was converted by. */
async function pidOf(conversion: ReturnType<ConverterPool["convert"]>): Promise<number> {
  const settled = await conversion;
  return settled.kind === "converted" ? Number(settled.markdown) : NaN;
}

test("the first file starts a child process, and the next file reuses it", async () => {
  open();
  expect(pool.childCount).toBe(0);
  const first = await pidOf(pool.convert(file("any")));
  expect(first).toBeGreaterThan(0);
  expect(first).not.toBe(process.pid);
  expect(await pidOf(pool.convert(file("any")))).toBe(first);
});

test.each([
  ["crash", "crashed"],
  ["leave", "crashed"],
  ["failed", "crashed"],
] as const)("a child that ends by %s fails only its own file", async (act, reason) => {
  open();
  const [lost, next] = await Promise.all([
    pool.convert(file(act)),
    pidOf(pool.convert(file("any"))),
  ]);
  expect(lost).toMatchObject({ kind: "failed", reason });
  expect(next).toBeGreaterThan(0);
  expect(pool.childCount).toBe(1);
});

test.each([
  ["hang", { silenceMs: 400 }],
  ["silence", { silenceMs: 400 }],
  ["progress", { totalMs: 600, silenceMs: 500 }],
] as const)(
  "a child that does nothing but %s is stopped, and its place is free",
  async (act, times) => {
    open(times);
    expect(await pool.convert(file(act))).toMatchObject({ kind: "failed", reason: "timed_out" });
    // On a busy machine the next child alone may need longer than that to start.
    Object.assign(options, { silenceMs: 20_000, totalMs: 20_000 });
    expect(await pidOf(pool.convert(file("any")))).toBeGreaterThan(0);
  },
);

test("files queue for a child when all are busy, and childrenMax is never exceeded", async () => {
  open({ childrenMax: 2 });
  const files = Array.from({ length: 8 }, () => pool.convert(file("any")));
  expect(pool.childCount).toBe(2);
  const pids = await Promise.all(files.map(pidOf));
  expect(new Set(pids).size).toBeLessThanOrEqual(2);
  expect(pids.every((pid) => pid > 0)).toBe(true);
  expect(pool.childCount).toBe(2);
});

test("a file is refused when the queue is full, and an aborted file frees its place in the queue", async () => {
  open({ waitingMax: 1 });
  const busy = pool.convert(file("silence"));
  const leaving = new AbortController();
  const waits = pool.convert(file("any"), leaving.signal);
  expect(await pool.convert(file("any"))).toMatchObject({ kind: "failed", reason: "busy" });
  leaving.abort();
  expect(await waits).toMatchObject({ kind: "failed", reason: "abandoned" });
  const last = pool.convert(file("any"));
  pool.close();
  expect(await busy).toMatchObject({ kind: "failed", reason: "abandoned" });
  expect(await last).toMatchObject({ kind: "failed", reason: "abandoned" });
  expect(pool.childCount).toBe(0);
});

test("a child is replaced after filesPerChildMax files, and ends when it is idle", async () => {
  open({ filesPerChildMax: 1 });
  const first = await pidOf(pool.convert(file("any")));
  expect(pool.childCount).toBe(0);
  expect(await pidOf(pool.convert(file("any")))).not.toBe(first);
});

test("the child's message about its file is returned", async () => {
  open();
  expect(await pool.convert(file("refuse"))).toEqual({
    kind: "refused",
    message: "The document is damaged.",
  });
  expect(await pool.convert(file("unfit"))).toEqual({ kind: "unfit", message: "no language data" });
});

test("a child process does not see the gateway's environment variables", async () => {
  open();
  const seen = await pool.convert(file("environment"));
  const names = seen.kind === "converted" ? seen.markdown.split(" ") : ["nothing"];
  expect(
    names.filter(
      (name) => !/^(?:BUN_|NODE_CHANNEL|NODE_UNIQUE_ID|PWD$|OLDPWD$|SHLVL$|_$)/.test(name),
    ),
  ).toEqual([]);
});
