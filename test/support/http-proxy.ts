import { connect, createServer, type Socket } from "node:net";

/** A request that the proxy received: its first line and its headers, names in lower case. */
interface ProxiedRequest {
  line: string;
  headers: Readonly<Record<string, string>>;
}

/** An HTTP proxy on loopback that forwards requests for any host to one port of loopback. */
export interface HttpProxy {
  port: number;
  readonly requests: readonly ProxiedRequest[];
  /** Number of accepted connections. */
  readonly connectionCount: number;
  stop(): void;
}

/** Starts a proxy; with `answer` it sends that answer instead of forwarding. */
export async function startHttpProxy({
  to,
  answer,
}: {
  to: number;
  answer?: string;
}): Promise<HttpProxy> {
  const requests: ProxiedRequest[] = [];
  const sockets = new Set<Socket>();
  let connectionCount = 0;
  const keep = (socket: Socket): Socket => {
    sockets.add(socket);
    return socket.on("error", () => undefined).on("close", () => sockets.delete(socket));
  };
  const server = createServer((client) => {
    connectionCount += 1;
    let onward: Socket | undefined;
    const onData = (bytes: Buffer): void => {
      // Requests here fit into one segment.
      const text = bytes.toString("latin1");
      requests.push(parsed(text.slice(0, text.indexOf("\r\n\r\n"))));
      if (answer !== undefined) client.write(answer);
      else if (text.startsWith("CONNECT ")) {
        client.off("data", onData);
        const origin = keep(
          connect(to, "127.0.0.1", () => {
            client.write("HTTP/1.1 200 Connection established\r\n\r\n");
            client.pipe(origin).pipe(client);
          }),
        );
      } else {
        if (onward === undefined) (onward = keep(connect(to, "127.0.0.1"))).pipe(client);
        // An origin server expects the path alone.
        onward.write(text.replace(/^(\S+) https?:\/\/[^/]+/, "$1 "), "latin1");
      }
    };
    keep(client).on("data", onData);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return {
    port: typeof address === "object" && address !== null ? address.port : 0,
    requests,
    get connectionCount() {
      return connectionCount;
    },
    stop() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

function parsed(head: string): ProxiedRequest {
  const [line = "", ...lines] = head.split("\r\n");
  return {
    line,
    headers: Object.fromEntries(
      lines.map((each) => [each.split(":")[0]?.toLowerCase(), each.replace(/^[^:]*: */, "")]),
    ),
  };
}
