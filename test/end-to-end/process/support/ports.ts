import { connect } from "node:net";

/** A port of 127.0.0.1 that was free a moment ago. */
export function freePort(): number {
  const listener = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: { data: () => undefined },
  });
  listener.stop(true);
  return listener.port;
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
