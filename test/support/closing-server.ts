import { createServer, type Socket } from "node:net";

/** A message to the server: how to close its open connections, and where to report that it has. */
export interface Ending {
  how: "finish" | "reset";
  /** One 32-bit integer, set to 1 and notified once the connections are closed. */
  done: SharedArrayBuffer;
}

/** A message from the server: the port it listens on, or a request that it has read. */
export type ServerNews = { port: number } | { request: number };

declare const self: Worker;

// A provider on its own thread, so that it can close connections while the test's thread is
// blocked.
const open = new Set<Socket>();
let requests = 0;
const server = createServer((socket) => {
  open.add(socket);
  socket.on("error", () => undefined);
  socket.on("close", () => open.delete(socket));
  socket.on("data", () => {
    requests += 1;
    self.postMessage({ request: requests } satisfies ServerNews);
    socket.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}");
  });
});
server.listen(0, "127.0.0.1", () => {
  const address = server.address();
  if (typeof address === "object" && address !== null)
    self.postMessage({ port: address.port } satisfies ServerNews);
});
self.onmessage = ({ data: { how, done } }: MessageEvent<Ending>) => {
  let left = open.size;
  for (const socket of open) {
    socket.on("close", () => {
      left -= 1;
      if (left > 0) return;
      const flag = new Int32Array(done);
      Atomics.store(flag, 0, 1);
      Atomics.notify(flag, 0);
    });
    if (how === "reset") socket.resetAndDestroy();
    else socket.destroy();
  }
};
