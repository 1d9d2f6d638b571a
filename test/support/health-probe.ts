import type { Probed } from "./health-probe-worker.ts";

/**
 * Asks a gateway for `/healthz` from a thread of its own, one request after the other, and keeps
 * the longest wait: as far as the gateway's process worked in it, so that what else runs on the
 * machine does not count.
 */
export class HealthProbe {
  private readonly worker = new Worker(new URL("./health-probe-worker.ts", import.meta.url));

  constructor({ url, child }: { url: string; child: { readonly pid: number } }) {
    this.worker.postMessage({ url: `${url}/healthz`, pid: child.pid } satisfies Probed);
  }

  /** Longest wait in milliseconds since the last call. */
  worstMs(): Promise<number> {
    const { promise, resolve } = Promise.withResolvers<number>();
    this.worker.onmessage = ({ data }: MessageEvent<number>) => resolve(data);
    this.worker.postMessage("worst");
    return promise;
  }

  end(): void {
    this.worker.terminate();
  }
}
