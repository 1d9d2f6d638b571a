import type { FrameSource } from "../../platform/lib/frame-source.ts";
import { Reply, type Answer } from "./reply.ts";
import { headerLines, headerLinesOf, replyHead, type Framing } from "./reply-head.ts";
import type { ReplyManner } from "./reply-manner.ts";

/** Where an answer is written to. */
export interface ReplySink {
  /**
   * Takes text of so many bytes in UTF-8, or bytes; a promise where the client has no room left. Never rejects: a client that left
   * takes anything.
   */
  write(data: string | Uint8Array, byteLength: number): Promise<void> | undefined;
  /** Whether the client has left. */
  readonly isGone: boolean;
  /** Tells once when the client leaves before the answer was written; at once where it has left. */
  onGone(listener: () => void): void;
}

const hasNoBody = (status: number): boolean => status === 204 || status === 304;

/** Writes an answer; settles once it is written, or nobody is there to read it. */
export function writeReply(answer: Answer, { sink, manner }: { sink: ReplySink; manner: ReplyManner }): Promise<void> | undefined {
  if (!(answer instanceof Reply)) return writeResponse(answer, { sink, manner });
  const lines = headerLines(answer.headers, answer.cookies);
  if (typeof answer.body !== "string") return writeFrames(answer.body, { status: answer.status, lines, sink, manner });
  return writeWhole(answer.body, { status: answer.status, lines, sink, manner });
}

interface Writing {
  status: number;
  lines: string;
  sink: ReplySink;
  manner: ReplyManner;
}

function writeWhole(body: string, { status, lines, sink, manner }: Writing): Promise<void> | undefined {
  const byteLength = Buffer.byteLength(body);
  const framing: Framing = hasNoBody(status) ? "none" : byteLength;
  // A head has ASCII only, so its length in bytes is its length.
  const head = replyHead({ status, lines, framing, manner });
  return manner.withoutBody || framing === "none" ? sink.write(head, head.length) : sink.write(head + body, head.length + byteLength);
}

async function writeResponse(response: Response, { sink, manner }: { sink: ReplySink; manner: ReplyManner }): Promise<void> {
  const body = Buffer.from(await response.arrayBuffer());
  const framing: Framing = hasNoBody(response.status) ? "none" : body.length;
  const head = Buffer.from(replyHead({ status: response.status, lines: headerLinesOf(response.headers), framing, manner }), "latin1");
  const whole = manner.withoutBody || framing === "none" ? head : Buffer.concat([head, body]);
  await sink.write(whole, whole.length);
}

const lastChunk = "0\r\n\r\n";
const chunkOf = (frames: string): string => `${Buffer.byteLength(frames).toString(16)}\r\n${frames}\r\n`;

/**
 * Writes frames as they come, and asks for the next ones when the client has room: a slow client slows the upstream instead of
 * filling memory. The head leaves with the frames that are there already, or by itself; the end with the last ones, where they are known.
 */
async function writeFrames(source: FrameSource, { status, lines, sink, manner }: Writing): Promise<void> {
  const { knowsChunks } = manner;
  const head = replyHead({ status, lines, framing: knowsChunks ? "chunked" : "until-close", manner });
  sink.onGone(() => source.cancel());
  if (manner.withoutBody) {
    source.cancel();
    await sink.write(head, head.length);
    return;
  }
  let pending = head;
  let frames = source.ready?.();
  do {
    if (frames !== undefined && frames !== "") pending += knowsChunks ? chunkOf(frames) : frames;
    const isOver = source.isOver === true;
    if (isOver && knowsChunks) pending += lastChunk;
    const room = pending === "" ? undefined : sink.write(pending, Buffer.byteLength(pending));
    if (room !== undefined) await room;
    if (isOver) return;
    pending = "";
    frames = await source.next();
  } while (frames !== undefined && !sink.isGone);
  if (knowsChunks && !sink.isGone) await sink.write(lastChunk, lastChunk.length);
}
