import { bindToParent } from "./process/bind-to-parent.ts";
import { PacedStreams } from "./mock-pacing.ts";
import {
  chunked,
  completionResponse,
  eventBytes,
  jsonResponse,
  lastChunk,
  streamHead,
  wholeStream,
} from "./mock-responses.ts";
import { RequestReader, type MockRequest } from "./mock-request-reader.ts";

/** A running mock upstream. */
export interface MockUpstream {
  readonly port: number;
  stats(): MockStats;
  stop(): void;
}

/** What the mock has seen; also served as JSON on `GET /stats`. */
export interface MockStats {
  requests: number;
  /** Streams that were begun and neither ended nor closed by the other side. */
  openStreams: number;
}

interface Connection {
  reader: RequestReader;
  /** What the socket did not take yet. */
  unsent: Buffer | undefined;
  /** An unfinished stream is on this connection. */
  streaming: boolean;
}

type MockSocket = Bun.Socket<Connection>;

/**
 * A provider of OpenAI's chat dialect on raw sockets, cheap enough not to be what is measured. The
 * model decides:
 * `large` answers at once (700 bytes, or 100 events in one go), `paced` sends an event every `intervalMs`, `quiet`
 * sends one and then nothing. Streams end with a usage chunk and `[DONE]`.
 */
export function startMockUpstream({ port = 0, intervalMs = 10 } = {}): MockUpstream {
  const stats: MockStats = { requests: 0, openStreams: 0 };
  const paced = new PacedStreams<MockSocket>(intervalMs);
  const server = Bun.listen<Connection>({
    hostname: "127.0.0.1",
    port,
    socket: {
      open(socket) {
        socket.data = {
          reader: new RequestReader((request) => answer({ socket, stats, paced }, request)),
          unsent: undefined,
          streaming: false,
        };
      },
      data: (socket, data) => socket.data.reader.feed(data),
      drain(socket) {
        const { unsent } = socket.data;
        socket.data.unsent = undefined;
        if (unsent !== undefined) send(socket, unsent);
      },
      close(socket) {
        if (socket.data.streaming) stats.openStreams -= 1;
        paced.delete(socket);
      },
    },
  });
  return {
    port: server.port,
    stats: () => ({ ...stats }),
    stop: () => {
      paced.stop();
      server.stop(true);
    },
  };
}

interface Answering {
  socket: MockSocket;
  stats: MockStats;
  paced: PacedStreams<MockSocket>;
}

function answer({ socket, stats, paced }: Answering, request: MockRequest): void {
  if (request.kind === "other") {
    return send(
      socket,
      jsonResponse(JSON.stringify(request.path === "/stats" ? stats : { data: [] })),
    );
  }
  stats.requests += 1;
  if (!request.stream) return send(socket, completionResponse);
  if (request.model === "large") return send(socket, wholeStream);
  stats.openStreams += 1;
  socket.data.streaming = true;
  send(socket, Buffer.concat([streamHead, chunked(eventBytes(0))]));
  if (request.model === "quiet") return;
  paced.add(socket, {
    send: (bytes) => send(socket, bytes),
    end: () => {
      send(socket, lastChunk);
      socket.data.streaming = false;
      stats.openStreams -= 1;
    },
  });
}

function send(socket: MockSocket, bytes: Buffer): void {
  const { unsent } = socket.data;
  if (unsent !== undefined) {
    socket.data.unsent = Buffer.concat([unsent, bytes]);
    return;
  }
  const written = Math.max(socket.write(bytes), 0);
  if (written < bytes.length) socket.data.unsent = bytes.subarray(written);
}

if (import.meta.main) {
  const mock = startMockUpstream();
  console.log(`mock ready ${mock.port}`);
  bindToParent();
}
