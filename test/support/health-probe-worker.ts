declare const self: Worker;

let worstMs = 0;
let waiting: (() => void) | undefined;

async function askForEver(url: string): Promise<never> {
  for (;;) {
    const askedMs = performance.now();
    await fetch(url).then((response) => response.text(), () => undefined);
    worstMs = Math.max(worstMs, performance.now() - askedMs);
    waiting?.();
  }
}

self.onmessage = ({ data }: MessageEvent<string>) => {
  if (data !== "worst") {
    void askForEver(data);
    return;
  }
  // A request that waits at this moment counts with all of its wait.
  waiting = () => {
    waiting = undefined;
    self.postMessage(worstMs);
    worstMs = 0;
  };
};
