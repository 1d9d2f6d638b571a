/** A port of loopback that was free a moment ago, for programs that cannot pick one themselves. */
export function freePort(): number {
  const probe = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data: () => undefined } });
  const { port } = probe;
  probe.stop(true);
  return port;
}

/**
 * Resolves when something accepts connections on a port of loopback; rejects when `isAlive` says it
 * never will.
 */
export async function waitForPort(
  port: number,
  options: { isAlive: () => boolean; timeoutMs: number },
): Promise<void> {
  const { isAlive, timeoutMs } = options;
  const giveUpAtMs = performance.now() + timeoutMs;
  while (performance.now() < giveUpAtMs && isAlive()) {
    if (await accepts(port)) return;
    await Bun.sleep(2);
  }
  throw new Error(
    isAlive() ? `nothing listened on its port within ${timeoutMs} ms` : "it ended while starting",
  );
}

async function accepts(port: number): Promise<boolean> {
  try {
    const socket = await Bun.connect({
      hostname: "127.0.0.1",
      port,
      socket: { data: () => undefined },
    });
    socket.terminate();
    return true;
  } catch {
    return false;
  }
}
