import type { RecordedRequest } from "./upstream/recorded-request.ts";
import { body, head, sse, type Script } from "./upstream/steps.ts";

/** Returns the output cap of a chat request; undefined where it has none. */
export function outputCapIn(request: RecordedRequest): number | undefined {
  const { max_completion_tokens: cap, max_tokens: olderCap } = request.json() as {
    max_completion_tokens?: number;
    max_tokens?: number;
  };
  return cap ?? olderCap;
}

/**
 * Returns a chat stream of this many pieces of four characters, each counted as a token, or of as
 * many as the request's cap allows.
 */
export const talkingStream =
  (tokens: number) =>
  (request: RecordedRequest): Script => {
    const said = Math.min(tokens, outputCapIn(request) ?? tokens);
    const chunk = (choice: object, more: object = {}): object => ({
      id: "c",
      object: "chat.completion.chunk",
      created: 1,
      model: "m",
      choices: [{ index: 0, ...choice }],
      ...more,
    });
    const piece = (count: number): string =>
      count === 0
        ? ""
        : `data: ${JSON.stringify(chunk({ delta: { content: "four".repeat(count) }, finish_reason: null }))}\n\n`;
    const usage = { prompt_tokens: 20, completion_tokens: said, total_tokens: 20 + said };
    return [
      head(),
      body(piece(100).repeat(Math.floor(said / 100)) + piece(said % 100)),
      sse(chunk({ delta: {}, finish_reason: said < tokens ? "length" : "stop" }, { usage })),
      sse("[DONE]"),
      { kind: "end" },
    ];
  };
