import type { Probed } from "./health-probe-worker.ts";

/**
 * Requests a gateway's `/healthz` from its own thread, every few milliseconds, and keeps the longest
 * wait. Of a wait, only the part in which the gateway's process worked counts, so that
 * other work on the machine does not.
 */
export class HealthProbe {
  private readonly worker = new Worker(new URL("./health-probe-worker.ts", import.meta.url));

  constructor({ url, child }: { url: string; child: { readonly pid: number } }) {
    this.worker.postMessage({ url: `${url}/healthz`, pid: child.pid } satisfies Probed);
  }

  /** Returns the longest wait in milliseconds since the last call. */
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
