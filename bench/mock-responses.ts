/** Content events of a streamed answer; a usage chunk and `[DONE]` follow them. */
export const contentEvents = 100;
/** `data:` lines of a streamed answer. */
export const eventsPerStream = contentEvents + 2;

const usage = { prompt_tokens: 120, completion_tokens: 90, total_tokens: 210 };
const common = {
  id: "chatcmpl-abc123",
  created: 1_700_000_000,
  model: "large-v2",
  system_fingerprint: "fp_0123456789",
};

const completionBody = JSON.stringify({
  ...common,
  object: "chat.completion",
  choices: [
    {
      index: 0,
      message: { role: "assistant", content: "Hello there, ".repeat(32), refusal: null },
      logprobs: null,
      finish_reason: "stop",
    },
  ],
  usage,
});

/** A JSON text as a whole response. */
export const jsonResponse = (body: string): Buffer =>
  Buffer.from(
    `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );

/** A whole answer of some 700 bytes, usage included. */
export const completionResponse = jsonResponse(completionBody);

/** Head of a streamed answer; `X-Accel-Buffering` tells nginx to pass each event on at once. */
export const streamHead = Buffer.from(
  [
    "HTTP/1.1 200 OK",
    "content-type: text/event-stream",
    "cache-control: no-cache",
    "x-accel-buffering: no",
    "transfer-encoding: chunked",
    "\r\n",
  ].join("\r\n"),
);

/** Ends a chunked body. */
export const lastChunk = Buffer.from("0\r\n\r\n");

/** Stands in front of the sending time in an event's content. */
export const timeMark = "sent=";
/** Digits of the sending time: milliseconds since the epoch with three decimals. */
export const timeDigits = 17;

const timePlaceholder = `${timeMark}${"0".repeat(timeDigits)};`;

function eventText(index: number): string {
  const delta =
    index === 0 ? { role: "assistant", content: timePlaceholder } : { content: timePlaceholder };
  const choice = {
    index: 0,
    delta,
    logprobs: null,
    finish_reason: index === contentEvents - 1 ? "stop" : null,
  };
  return JSON.stringify({ ...common, object: "chat.completion.chunk", choices: [choice] });
}

const payloads = [
  ...Array.from({ length: contentEvents }, (_, index) => eventText(index)),
  JSON.stringify({ ...common, object: "chat.completion.chunk", choices: [], usage }),
  "[DONE]",
];

/**
 * The bytes of one event, from the first content event (0) over the usage chunk (100) to `[DONE]`
 * (101).
 */
export const eventBytes = (index: number): Buffer =>
  Buffer.from(`data: ${payloads[index] ?? "[DONE]"}\n\n`);

/** Bytes as one chunk of a chunked body. */
export const chunked = (bytes: Buffer): Buffer =>
  Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from("\r\n")]);

const chunks = payloads.map((_, index) => {
  const bytes = chunked(eventBytes(index));
  const mark = bytes.indexOf(timeMark);
  return { bytes, timeAt: mark < 0 ? -1 : mark + timeMark.length };
});

/**
 * One event as a chunk of its own, with `sentAtMs` (milliseconds since the epoch) written into its
 * content.
 */
export function timedChunk(index: number, sentAtMs: number): Buffer {
  const chunk = chunks[index];
  if (chunk === undefined) return lastChunk;
  const bytes = Buffer.from(chunk.bytes);
  if (chunk.timeAt >= 0) bytes.write(sentAtMs.toFixed(3), chunk.timeAt, "latin1");
  return bytes;
}

/**
 * A streamed answer from head to last chunk, for sending in one go; each event is a chunk of its
 * own.
 */
export const wholeStream = Buffer.concat([
  streamHead,
  ...chunks.map(({ bytes }) => bytes),
  lastChunk,
]);
