import { connect } from "node:net";

/** Ports below those that systems choose from: no connection and no other listener takes one. */
const [firstPort, portCount] = [15_000, 8_500];
let portsTried = process.pid * 97;

/**
 * Returns a port of 127.0.0.1 that nothing listens on, each time another one. No other process of
 * the tests is given it while this one lives.
 */
export function freePort(): number {
  for (let tries = 0; tries < portCount; tries += 1) {
    const port = firstPort + (portsTried++ % portCount);
    // A listener on a second port tells the others, since the first is not taken at once.
    const mark = listenOn(port + portCount);
    if (mark === undefined) continue;
    mark.unref();
    const listener = listenOn(port);
    listener?.stop(true);
    if (listener !== undefined) return port;
    mark.stop(true);
  }
  throw new Error(`no port from ${firstPort} to ${firstPort + portCount - 1} is free`);
}

/** Returns a listener on a port; undefined where the port is in use. */
function listenOn(port: number) {
  try {
    return Bun.listen({ hostname: "127.0.0.1", port, socket: { data: () => undefined } });
  } catch {
    return undefined;
  }
}

/** Whether a port of 127.0.0.1 refuses connections. */
export const isRefused = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket
      .once("error", () => resolve(true))
      .once("connect", () => {
        socket.destroy();
        resolve(false);
      });
  });
