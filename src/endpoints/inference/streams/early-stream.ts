import type { RequestContext } from "../../../access/define-endpoint.ts";
import { asGatewayError } from "../../../http/error-envelope.ts";
import { type Answer, eventStreamHeaders, Reply } from "../../../http/reply.ts";
import type { ClientDialect } from "../../../inference/dialects/dialect.ts";
import type { ChatCall } from "../../../inference/pipeline/inference-call.ts";
import type {
  FrameWait,
  KeepAliveTicker,
} from "../../../inference/pipeline/stream/keep-alive-ticker.ts";
import type { FrameSource } from "../../../platform/kernel/frame-source.ts";
import { GatewayError } from "../../../platform/kernel/errors.ts";
import type { Dependencies } from "../../dependencies.ts";

/** The parts of a request whose stream may begin before its content. */
interface EarlyStream {
  call: ChatCall;
  dialect: ClientDialect;
  inference: Pick<
    Dependencies["inference"],
    "clock" | "keepAlive" | "keepaliveBeforeContentMs" | "observer"
  >;
}

/**
 * Serves a request, and begins its stream with pings where no content has come within
 * `stream.keepalive_before_content_s`. From then on failures are events of the stream, since its
 * status has been sent. Other candidates are still tried. Without the setting, or for whole
 * answers, nothing changes.
 */
export function withEarlyStream(
  context: RequestContext,
  { call, dialect, inference }: EarlyStream,
  serve: () => Promise<Answer>,
): Promise<Answer> {
  const { keepaliveBeforeContentMs: patienceMs, keepAlive } = inference;
  const serving = serve();
  if (patienceMs === undefined || !call.requirements.stream) return serving;
  return new Promise((resolve, reject) => {
    const begin = (): void => {
      const frames = new EarlyFrames(serving, {
        keepAlive,
        pingFrame: dialect.pingFrame ?? ": ping\n",
        errorFrames: (error) => errorText(error, { call, dialect, inference }),
      });
      const headers = context.answerHeaders.copy();
      headers.share(eventStreamHeaders);
      resolve(new Reply(frames, { headers }));
    };
    const timer = setTimeout(begin, patienceMs);
    serving.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

/** Returns the frames of a failure. Errors of the gateway itself are shown without their text. */
function errorText(error: unknown, { call, dialect, inference }: EarlyStream): string {
  const { traceId, generationId, body } = call;
  if (!(error instanceof GatewayError)) inference.observer.earlyStreamFailed(error, generationId);
  return dialect
    .encodeStreamError(asGatewayError(error), {
      traceId,
      model: String(body["model"]),
      nowSeconds: Math.floor(inference.clock.nowMs() / 1000),
      requestBody: body,
    })
    .join("");
}

interface EarlyFramesOptions {
  keepAlive: KeepAliveTicker;
  pingFrame: string;
  errorFrames(error: unknown): string;
}

/** Pings, and then the frames of the answer that was being waited for. */
class EarlyFrames implements FrameSource {
  private readonly pingFrame: string;
  private readonly wait: FrameWait;
  private headDue = true;
  /** The frames of the answer, once it has begun. */
  private source: FrameSource | undefined;
  /** Frames of a failure in place of an answer, or a text that was answered at once. */
  private last: string | undefined;
  private arrived = false;
  private clientGone = false;

  constructor(serving: Promise<Answer>, { keepAlive, pingFrame, errorFrames }: EarlyFramesOptions) {
    this.pingFrame = pingFrame;
    this.wait = keepAlive.newWait(pingFrame);
    serving.then(
      (answer) => this.arrive(answer),
      (error: unknown) => this.arrive(errorFrames(error)),
    );
  }

  next(): Promise<string | undefined> {
    if (this.headDue) {
      this.headDue = false;
      return Promise.resolve(this.pingFrame);
    }
    if (this.arrived) return this.rest();
    return new Promise((resolve) => this.wait.begin(resolve));
  }

  cancel(): void {
    this.clientGone = true;
    this.wait.end();
    this.source?.cancel();
  }

  private arrive(answer: Answer | string): void {
    this.arrived = true;
    if (typeof answer === "string") this.last = answer;
    else if (answer instanceof Reply && typeof answer.body !== "string") this.source = answer.body;
    this.wait.end();
    if (this.clientGone) this.source?.cancel();
    else if (this.wait.isOpen) void this.rest().then((frames) => this.wait.give(frames));
  }

  private rest(): Promise<string | undefined> {
    if (this.source !== undefined) return this.source.next();
    const { last } = this;
    this.last = undefined;
    return Promise.resolve(last);
  }
}
