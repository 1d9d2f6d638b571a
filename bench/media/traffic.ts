import { connect } from "node:net";
import { testLlmKey } from "../../test/support/gateway.ts";
import { pictureStream } from "./pictures.ts";

/** A stream of speech: so many pieces of so many bytes. */
const speechPieces = 100;
const speechPieceBytes = 8 * 1024;

/** Returns a WAV file of so many bytes. */
export function wavOf(bytes: number): Buffer {
  const file = Buffer.alloc(bytes);
  file.write("RIFF", 0, "latin1");
  file.writeUInt32LE(bytes - 8, 4);
  file.write("WAVEfmt ", 8, "latin1");
  file.writeUInt32LE(16, 16);
  file.writeUInt16LE(1, 20);
  file.writeUInt16LE(1, 22);
  file.writeUInt32LE(16_000, 24);
  file.writeUInt32LE(32_000, 28);
  file.writeUInt16LE(2, 32);
  file.writeUInt16LE(16, 34);
  file.write("data", 36, "latin1");
  file.writeUInt32LE(bytes - 44, 40);
  return file;
}

/** Starts an upstream that drops what it reads and speaks slowly. */
export function startMediaUpstream(): { url: string; stop(): void } {
  const picture = pictureStream(4_000_000);
  const server = Bun.serve({
    port: 0,
    maxRequestBodySize: 1024 ** 3,
    idleTimeout: 0,
    async fetch(request) {
      const { pathname } = new URL(request.url);
      if (pathname.endsWith("/audio/speech")) return new Response(slowSound());
      if (pathname.endsWith("/chat/completions") && (await request.text()).includes("a picture"))
        return new Response(picture, { headers: { "content-type": "text/event-stream" } });
      if (!request.bodyUsed) for await (const _ of request.body ?? []);
      return pathname.endsWith("/audio/transcriptions")
        ? Response.json({ text: "heard", usage: { type: "duration", seconds: 1 } })
        : Response.json(completion);
    },
  });
  return { url: `http://127.0.0.1:${server.port}/v1`, stop: () => void server.stop(true) };
}

const completion = {
  id: "c",
  object: "chat.completion",
  created: 1,
  model: "chat",
  choices: [{ index: 0, finish_reason: "stop", message: { role: "assistant", content: "hello" } }],
  usage: { prompt_tokens: 5, completion_tokens: 1, total_tokens: 6 },
};

async function* slowSound(): AsyncGenerator<Uint8Array> {
  for (let index = 0; index < speechPieces; index += 1) {
    yield new Uint8Array(speechPieceBytes);
    await Bun.sleep(50);
  }
}

const post = (origin: string, path: string, body: object): Promise<Response> =>
  fetch(`${origin}/api/v1${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${testLlmKey}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });

/** Sends one chat request. Returns its milliseconds; throws where it fails. */
export async function chatMs(origin: string): Promise<number> {
  const startedMs = performance.now();
  const messages = [{ role: "user", content: "hi" }];
  const response = await post(origin, "/chat/completions", { model: "bench/chat", messages });
  const text = await response.text();
  if (!response.ok) throw new Error(`chat: ${response.status} ${text.slice(0, 300)}`);
  return performance.now() - startedMs;
}

/** Reads a stream of speech to its end. Throws where it fails or is short. */
export async function speechOf(origin: string): Promise<void> {
  const body = { model: "bench/speak", input: "hello", voice: "alloy", response_format: "pcm" };
  const response = await post(origin, "/audio/speech", body);
  let bytes = 0;
  for await (const piece of response.body ?? []) bytes += piece.byteLength;
  if (!response.ok || bytes !== speechPieces * speechPieceBytes)
    throw new Error(`speech: ${response.status}, ${bytes} bytes`);
}

const boundary = "switchyard-bench-boundary";
const formHead = Buffer.from(
  `--${boundary}\r\ncontent-disposition: form-data; name="model"\r\n\r\nbench/listen\r\n` +
    `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="a.wav"\r\ncontent-type: audio/wav\r\n\r\n`,
);
const formEnd = Buffer.from(`\r\n--${boundary}--\r\n`);

/** How a client on a slow line sends: some bytes at a time, and a rest after each. */
export const slowLine: Line = { pieceBytes: 16 * 1024, restMs: 125 };

/** How a client sends its file. */
interface Line {
  pieceBytes: number;
  restMs: number;
}

/**
 * Sends a file for transcription over a socket of its own, in pieces of one buffer, so that
 * hundreds at once take no memory here; as fast as the server reads, or at the pace of a line.
 * Throws where it fails.
 */
export function upload(
  origin: string,
  file: Buffer,
  { pieceBytes, restMs }: Line = { pieceBytes: 256 * 1024, restMs: 0 },
): Promise<void> {
  const { hostname, port } = new URL(origin);
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const socket = connect(Number(port), hostname);
  const length = formHead.byteLength + file.byteLength + formEnd.byteLength;
  socket.write(
    `POST /api/v1/audio/transcriptions HTTP/1.1\r\nhost: ${hostname}\r\nconnection: close\r\n` +
      `authorization: Bearer ${testLlmKey}\r\ncontent-length: ${length}\r\n` +
      `content-type: multipart/form-data; boundary=${boundary}\r\n\r\n`,
  );
  socket.write(formHead);
  let sent = 0;
  const send = (): void => {
    while (sent < file.byteLength) {
      const piece = file.subarray(sent, sent + pieceBytes);
      sent += piece.byteLength;
      if (!socket.write(piece)) return void socket.once("drain", send);
      if (restMs > 0) return void setTimeout(send, restMs);
    }
    socket.write(formEnd);
  };
  send();
  let answer = "";
  socket.on("data", (bytes) => (answer += bytes.toString("latin1")));
  socket.on("error", reject);
  socket.on("close", () => {
    if (answer.startsWith("HTTP/1.1 200") && answer.includes("heard")) resolve();
    else reject(new Error(`transcription: ${answer.slice(0, 600)}`));
  });
  return promise;
}
