/**
 * Loaded before a gateway by a test that looks for secrets. SIGUSR1 advances monotonic time by ten
 * minutes and runs the timers that are then due; SIGUSR2 writes a snapshot of the live heap to the
 * file named by HEAP_FILE.
 */
import { writeFileSync } from "node:fs";

const dueMs = 60_000;
const works: (() => void)[] = [];
let passedMs = 0;
let written = 0;

const realNow = performance.now.bind(performance);
performance.now = () => realNow() + passedMs;

const realInterval = globalThis.setInterval;
globalThis.setInterval = new Proxy(realInterval, {
  apply(target, self, [work, everyMs, ...rest]: Parameters<typeof realInterval>) {
    if (typeof work === "function" && (everyMs ?? 0) <= dueMs) works.push(() => work(...rest));
    return Reflect.apply(target, self, [work, everyMs, ...rest]);
  },
});

process.on("SIGUSR1", () => {
  passedMs += 10 * dueMs;
  for (const work of works) work();
  process.stderr.write("time passed\n");
});

process.on("SIGUSR2", () => {
  Bun.gc(true);
  Bun.gc(true);
  writeFileSync(process.env["HEAP_FILE"] ?? "heap.json", Bun.generateHeapSnapshot("v8"));
  process.stderr.write(`heap written ${(written += 1)}\n`);
});
