import { bytesAnswer } from "../../../http/reply.ts";
import type { JsonObject } from "../../../inference/canonical/json.ts";
import type {
  BedrockEvent,
  BedrockShaper,
} from "../../../inference/surfaces/bedrock/converse-shaper.ts";
import type { FrameSource } from "../../../platform/kernel/frame-source.ts";

const eventStream = "application/vnd.amazon.eventstream";

/** Writes events as Amazon's binary messages. The codec is loaded by the first such stream. */
async function eventWriter(): Promise<(event: BedrockEvent) => Uint8Array> {
  const { EventStreamCodec } = await import("@smithy/eventstream-codec");
  const codec = new EventStreamCodec(
    (bytes) => (typeof bytes === "string" ? bytes : Buffer.from(bytes).toString("utf8")),
    (text) => Buffer.from(text),
  );
  const text = (value: string) => ({ type: "string" as const, value });
  return ({ type, isException, payload }) =>
    codec.encode({
      headers: {
        [isException ? ":exception-type" : ":event-type"]: text(type),
        ":content-type": text("application/json"),
        ":message-type": text(isException ? "exception" : "event"),
      },
      body: Buffer.from(JSON.stringify(payload)),
    });
}

/**
 * Answers with a Messages stream as Amazon's binary messages. A client that leaves ends the
 * exchange.
 */
export async function eventStreamResponse(
  source: FrameSource,
  { shaper, headers }: { shaper: BedrockShaper; headers: Readonly<Record<string, string>> },
): Promise<Response> {
  const write = await eventWriter();
  const stream = new ReadableStream<Uint8Array>({
    async pull(controller) {
      for (;;) {
        const frames = await source.next();
        if (frames === undefined) return controller.close();
        const events = frames
          .split("\n")
          .filter((line) => line.startsWith("data: "))
          .flatMap((line) => shaper.events(JSON.parse(line.slice("data: ".length)) as JsonObject));
        for (const event of events) controller.enqueue(write(event));
        if (events.length > 0) return;
      }
    },
    cancel: () => source.cancel(),
  });
  return bytesAnswer(stream, { headers: { ...headers, "content-type": eventStream } });
}
