import type { Socket } from "bun";
import { RecordedRequest } from "./recorded-request.ts";
import { type ParsedRequest, RequestParser } from "./request-parser.ts";
import type { Script, SplitStep, Step, WireStep } from "./steps.ts";
import { WireWriter } from "./wire-writer.ts";

/** Chooses the script of a request at the moment in which the request is complete. */
export type ScriptSource = (request: RecordedRequest) => Script;

/**
 * Waits for two turns of the event loop: one so that a write is not corked with the callback that
 * caused it, one so that clients in this process have read it before the next.
 */
const turn = (): Promise<void> =>
  new Promise((resolve) => setImmediate(() => setImmediate(resolve)));

/**
 * A client connection, which reads requests, pipelined ones included, and plays their scripts one
 * by one.
 */
export class UpstreamConnection {
  private readonly socket: Socket<UpstreamConnection>;
  private readonly index: number;
  private readonly scriptFor: ScriptSource;
  private readonly parser: RequestParser;
  private readonly waiting: { request: RecordedRequest; script: Script }[] = [];
  private readonly closed = Promise.withResolvers<void>();
  private requestCount = 0;
  private isPlaying = false;
  private isClosed = false;
  private drained = Promise.withResolvers<void>();

  constructor(socket: Socket<UpstreamConnection>, index: number, scriptFor: ScriptSource) {
    this.socket = socket;
    this.index = index;
    this.scriptFor = scriptFor;
    this.parser = new RequestParser(() => this.socket.write("HTTP/1.1 100 Continue\r\n\r\n"));
    socket.setNoDelay(true);
  }

  /** Whether no request is being answered. */
  get isIdle(): boolean {
    return !this.isPlaying;
  }

  onData(bytes: Uint8Array): void {
    for (const parsed of this.parsedFrom(bytes)) {
      const place = { connectionIndex: this.index, indexOnConnection: this.requestCount };
      this.requestCount += 1;
      const request = new RecordedRequest(parsed, place);
      this.waiting.push({ request, script: this.scriptFor(request) });
    }
    if (!this.isPlaying) void this.playAll();
  }

  onDrain(): void {
    this.drained.resolve();
    this.drained = Promise.withResolvers();
  }

  onClose(): void {
    this.isClosed = true;
    for (const { request } of this.waiting) request.markAborted();
    this.closed.resolve();
    this.drained.resolve();
  }

  /** Closes the connection with a FIN. */
  finish(): void {
    this.socket.end();
  }

  /** Marks the open answers as cut by the upstream itself rather than aborted by the client. */
  abandon(): void {
    for (const { request } of this.waiting) request.markBroken();
  }

  private parsedFrom(bytes: Uint8Array): ParsedRequest[] {
    try {
      return this.parser.push(bytes);
    } catch (error) {
      this.socket.end(`HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n`);
      console.error("the fault upstream was sent what is no HTTP:", error);
      return [];
    }
  }

  private async playAll(): Promise<void> {
    this.isPlaying = true;
    for (let next = this.waiting[0]; next && !this.isClosed; next = this.waiting[0]) {
      await this.play(next.script, next.request);
      this.waiting.shift();
    }
    this.isPlaying = false;
  }

  private async play(script: Script, request: RecordedRequest): Promise<void> {
    const writer = new WireWriter();
    await turn();
    for (const step of script) {
      if (this.isClosed) return;
      await this.playStep(step, { writer, request });
    }
    // The script has ended before its answer: the connection stays open until the client closes it.
    if (!writer.isComplete) await this.closed.promise;
  }

  private async playStep(
    step: Step,
    answer: { writer: WireWriter; request: RecordedRequest },
  ): Promise<void> {
    switch (step.kind) {
      case "gate":
        step.reach();
        await Promise.race([step.opened, this.closed.promise]);
        return;
      case "stall":
        await this.closed.promise;
        return;
      case "cut":
      case "reset":
        answer.request.markBroken();
        if (step.kind === "cut") this.socket.end();
        else this.socket.terminate();
        await this.closed.promise;
        return;
      case "split":
        await this.sendPieces(splitBytes(step, answer.writer), answer);
        return;
      default:
        await this.sendPieces([answer.writer.encode(step)], answer);
    }
  }

  private async sendPieces(
    pieces: readonly Uint8Array[],
    { writer, request }: { writer: WireWriter; request: RecordedRequest },
  ): Promise<void> {
    for (const [index, piece] of pieces.entries()) {
      // Marked before the last byte is sent: a client that hangs up on that byte has not aborted
      // anything.
      if (index === pieces.length - 1 && writer.isComplete) request.markAnswered();
      await this.write(piece);
    }
    if (writer.endsWithConnection) this.socket.end();
  }

  /** Writes one segment; resolves when the kernel has taken it all, or the connection is closed. */
  private async write(bytes: Uint8Array): Promise<void> {
    let rest = bytes;
    while (rest.length > 0 && !this.isClosed) {
      const written = this.socket.write(rest);
      if (written < 0) return;
      rest = rest.subarray(written);
      if (rest.length > 0) await this.drained.promise;
    }
    if (bytes.length > 0) await turn();
  }
}

function splitBytes({ at, steps }: SplitStep, writer: WireWriter): Uint8Array[] {
  const bytes = Buffer.concat(steps.map((step: WireStep) => writer.encode(step)));
  const inner = at === "every-byte" ? Array.from(bytes.keys()).slice(1) : at;
  const edges = [0, ...inner, bytes.length];
  return edges.slice(1).map((end, index) => bytes.subarray(edges[index], end));
}
