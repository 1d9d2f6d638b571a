import { EventStreamCodec } from "@smithy/eventstream-codec";

const codec = new EventStreamCodec(
  (bytes) => (typeof bytes === "string" ? bytes : Buffer.from(bytes).toString("utf8")),
  (text) => Buffer.from(text),
);

const text = (value: string): { type: "string"; value: string } => ({ type: "string", value });

/**
 * Returns one message of an Amazon event stream. An event whose name begins with `exception:`
 * becomes that exception.
 */
export function eventStreamMessage(event: string, payload: string): Uint8Array {
  const exception = /^exception:(.*)$/.exec(event)?.[1];
  return codec.encode({
    headers: {
      ...(exception === undefined
        ? { ":event-type": text(event) }
        : { ":exception-type": text(exception) }),
      ":content-type": text("application/json"),
      ":message-type": text(exception === undefined ? "event" : "exception"),
    },
    body: Buffer.from(payload),
  });
}

/** Returns the messages of a cassette, whose lines each hold an event's name and its payload. */
export const messagesOfLines = (lines: string): Uint8Array =>
  Buffer.concat(
    lines
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => {
        const end = line.indexOf(" ");
        return eventStreamMessage(line.slice(0, end), line.slice(end + 1));
      }),
  );
