/** Loaded before a gateway by a test of its hourly work: SIGUSR2 runs the timers of an hour. */
const hourMs = 3_600_000;
const works: (() => void)[] = [];

const realInterval = globalThis.setInterval;
globalThis.setInterval = new Proxy(realInterval, {
  apply(target, self, [work, everyMs, ...rest]: Parameters<typeof realInterval>) {
    if (typeof work === "function" && everyMs === hourMs) works.push(() => work(...rest));
    return Reflect.apply(target, self, [work, everyMs, ...rest]);
  },
});

process.on("SIGUSR2", () => {
  for (const work of works) work();
});
