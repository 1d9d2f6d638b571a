import type { SocketMode } from "../../dialects/socket-mode.ts";
import type { UpstreamResponse } from "../../upstream/upstream-client.ts";
import { UpstreamSocket } from "../../upstream/upstream-socket.ts";
import { SocketAnswer } from "./socket-answer.ts";
import type { SocketRequest } from "./socket-turn.ts";

/**
 * A socket to a provider that belongs to one socket of a client. It is opened with the first request
 * and again after it was closed, answers one request at a time, and remembers its latest response.
 */
export class ProviderSocket {
  private socket: UpstreamSocket | undefined;
  private mode: SocketMode | undefined;
  private answer: SocketAnswer | undefined;
  /** The response that the provider remembers, by both its ids. */
  private latest: { shownId: string; responseId: string } | undefined;
  private isBusy = false;
  /** Whether the provider refused the handshake, so that no further one is tried. */
  private isRefused = false;
  private isRetired = false;

  /**
   * Sends a request, and resolves with its answer once the first event has come. Resolves with
   * undefined where the socket is in use, refuses the request or is closed before that, so that the
   * request has to be sent over HTTP. Rejects with an `UpstreamFailure` where nothing comes in time,
   * or the client leaves.
   */
  async ask(request: SocketRequest): Promise<UpstreamResponse | undefined> {
    if (this.isBusy || this.isRefused || this.isRetired) return undefined;
    this.isBusy = true;
    const socket = this.socket ?? (await this.open(request));
    if (socket === undefined) {
      this.isBusy = false;
      return undefined;
    }
    const frame = this.frameOf(request);
    const answer = this.begin(request);
    if (!answer.isOver) socket.send(frame);
    return (await answer.begun) ? answer : undefined;
  }

  /** Closes the socket, once its answer in flight has ended. */
  retire(): void {
    this.isRetired = true;
    if (!this.isBusy) this.drop();
  }

  private async open({ target, mode }: SocketRequest): Promise<UpstreamSocket | undefined> {
    let socket: UpstreamSocket;
    try {
      socket = await UpstreamSocket.open(target);
    } catch {
      this.isRefused = true;
      return undefined;
    }
    if (this.isRetired) {
      socket.close();
      return undefined;
    }
    this.socket = socket;
    this.mode = mode;
    socket.listen({
      received: (text) => {
        if (this.socket === socket) this.received(text);
      },
      closed: () => {
        if (this.socket === socket) this.lost();
      },
    });
    return this.socket;
  }

  /** Returns the frame of a request, which leaves out what the provider remembers. */
  private frameOf({ mode, text, turn: { continues } }: SocketRequest): string {
    const { latest } = this;
    const isLatest = latest !== undefined && latest.shownId === continues?.shownId;
    return mode.requestFrame(
      text,
      isLatest && continues !== undefined
        ? { responseId: latest.responseId, ...continues }
        : undefined,
    );
  }

  private begin({ turn, timeouts, abortScope, upstream }: SocketRequest): SocketAnswer {
    this.latest = undefined;
    const answer: SocketAnswer = new SocketAnswer({
      timeouts,
      onOver: (responseId) => {
        untie();
        this.answer = undefined;
        this.isBusy = false;
        if (responseId !== undefined) this.latest = { shownId: turn.shownId, responseId };
        // What comes after a failure could be taken for the next answer.
        if (responseId === undefined || this.isRetired) this.drop();
      },
    });
    const untie = upstream.tie(answer);
    this.answer = answer;
    abortScope.attach(answer);
    abortScope.listen();
    return answer;
  }

  private received(text: string): void {
    const { answer, mode } = this;
    // Without a request, only the limit of the socket's age is reported.
    if (answer === undefined || mode === undefined) this.drop();
    else answer.take(mode.readFrame(text));
  }

  private lost(): void {
    this.socket = undefined;
    this.latest = undefined;
    this.answer?.lose();
  }

  private drop(): void {
    const { socket } = this;
    this.socket = undefined;
    this.latest = undefined;
    socket?.close();
  }
}
