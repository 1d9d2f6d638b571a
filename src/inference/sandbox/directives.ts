/** The effect of one directive, and the largest value that it accepts. */
interface DirectiveFacts {
  most: number;
  meaning: string;
}

const longestWaitMs = 600_000;
const mostTokens = 131_072;

/**
 * All directives that a prompt can contain: `sandbox:name=value` or `sandbox:name` (the value is
 * then 1), anywhere in the last user message, or in the input of a surface without messages. A
 * "content event" is a stream event that carries a piece of reasoning, text or tool arguments.
 */
export const directiveTable = {
  delay_ms: {
    most: longestWaitMs,
    meaning: "Waits this many milliseconds before the head of the answer.",
  },
  token_delay_ms: {
    most: longestWaitMs,
    meaning: "Waits this many milliseconds before each token.",
  },
  tokens: { most: mostTokens, meaning: "Makes the text exactly this many tokens long." },
  calls: {
    most: 64,
    meaning: "Calls this many tools at once; 0 answers with text although the request has tools.",
  },
  empty: { most: 1, meaning: "Answers without any content." },
  status: { most: 599, meaning: "Refuses with this HTTP status, 400 to 599." },
  retry_after: { most: 86_400, meaning: "Sends `retry-after` with a refusal, in seconds." },
  cut_after: { most: mostTokens, meaning: "Resets the connection after this many content events." },
  stall_after: {
    most: mostTokens,
    meaning: "Stops sending after this many content events, without closing.",
  },
  error_after: {
    most: mostTokens,
    meaning: "Sends the dialect's error event after this many content events.",
  },
  cached_tokens: {
    most: mostTokens,
    meaning: "Reports this many input tokens as read from a cache.",
  },
  cache_write_tokens: {
    most: mostTokens,
    meaning: "Reports this many input tokens as written to a cache.",
  },
  no_usage: { most: 1, meaning: "Reports no usage." },
} as const satisfies Record<string, DirectiveFacts>;

type DirectiveName = keyof typeof directiveTable;

/** The directives of a prompt. Of a repeated name, the last one counts. */
export type Directives = Partial<Record<DirectiveName, number>>;

const directivePattern = /\bsandbox:([a-z_]+)(?:=(\d{1,9}))?/g;

const isDirectiveName = (name: string): name is DirectiveName =>
  Object.hasOwn(directiveTable, name);

/** Reads the directives of a text. Names that are not in the table are ordinary text. */
export function readDirectives(text: string): Directives {
  const directives: Directives = {};
  if (!text.includes("sandbox:")) return directives;
  for (const [, name = "", value = "1"] of text.matchAll(directivePattern)) {
    if (isDirectiveName(name))
      directives[name] = Math.min(Number(value), directiveTable[name].most);
  }
  return directives;
}

/** Returns the text without its directives, so that an echo of it has none. */
export function withoutDirectives(text: string): string {
  if (!text.includes("sandbox:")) return text;
  return text
    .replace(directivePattern, (whole: string, name: string) =>
      isDirectiveName(name) ? "" : whole,
    )
    .trim();
}
