import { EventStreamCodec } from "@smithy/eventstream-codec";

/** An event of a binary stream of Amazon's, by its name. */
export interface AmazonEvent {
  type: string;
  payload: unknown;
}

/** Returns the events of a binary stream, in order. Throws where it is none. */
export async function amazonEvents(response: Response): Promise<AmazonEvent[]> {
  const type = response.headers.get("content-type");
  if (type !== "application/vnd.amazon.eventstream") throw new Error(`the answer is ${type}`);
  const codec = new EventStreamCodec(
    (bytes) => (typeof bytes === "string" ? bytes : Buffer.from(bytes).toString("utf8")),
    (text) => Buffer.from(text),
  );
  const bytes = new Uint8Array(await response.arrayBuffer());
  const events: AmazonEvent[] = [];
  for (let start = 0; start < bytes.byteLength; ) {
    const length = new DataView(bytes.buffer, start).getUint32(0);
    const { headers, body } = codec.decode(bytes.subarray(start, start + length));
    const name = headers[":event-type"] ?? headers[":exception-type"];
    events.push({
      type: String(name?.value),
      payload: JSON.parse(Buffer.from(body).toString("utf8")),
    });
    start += length;
  }
  return events;
}
