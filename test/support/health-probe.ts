/** Asks a gateway for `/healthz` from a thread of its own, one request after the other, and keeps the longest wait. */
export class HealthProbe {
  private readonly worker = new Worker(new URL("./health-probe-worker.ts", import.meta.url));

  constructor(url: string) {
    this.worker.postMessage(`${url}/healthz`);
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
