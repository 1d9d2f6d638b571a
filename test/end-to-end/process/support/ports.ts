import { connect } from "node:net";

/** Ports below those that systems choose from: no connection and no other listener takes one. */
const [firstPort, portCount] = [15_000, 17_000];
let portsTried = process.pid * 97;

/** Returns a port of 127.0.0.1 that nothing listens on, each time another one. */
export function freePort(): number {
  for (let tries = 0; tries < portCount; tries += 1) {
    const port = firstPort + (portsTried++ % portCount);
    if (isFree(port)) return port;
  }
  throw new Error(`no port from ${firstPort} to ${firstPort + portCount - 1} is free`);
}

function isFree(port: number): boolean {
  try {
    Bun.listen({ hostname: "127.0.0.1", port, socket: { data: () => undefined } }).stop(true);
    return true;
  } catch {
    return false;
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
