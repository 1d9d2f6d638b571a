import { createParser } from "eventsource-parser";

/** A chat stream read to its end: the chunks, and whether `[DONE]` came last. */
export interface ReadStream {
  chunks: unknown[];
  done: boolean;
}

/** Reads a streamed chat answer; the test fails where an event comes after `[DONE]`. */
export async function readChatStream(response: Response): Promise<ReadStream> {
  const read: ReadStream = { chunks: [], done: false };
  const parser = createParser({
    onEvent({ data }) {
      if (read.done) throw new Error(`an event came after [DONE]: ${data}`);
      if (data === "[DONE]") read.done = true;
      else read.chunks.push(JSON.parse(data));
    },
  });
  parser.feed(await response.text());
  return read;
}
