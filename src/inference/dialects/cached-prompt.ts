import { memberText } from "../../platform/kernel/json/json-members.ts";
import { isBillingLine } from "./encode-state.ts";

type Fields = Readonly<Record<string, unknown>>;

/** A request of a chat-like dialect: its body as it was received, and parsed. */
interface PromptRequest {
  text: string;
  body: Fields;
}

/** The most characters of a prompt that are hashed: more than any instructions with tools have. */
const hashedCharactersMax = 256 * 1024;

/** The prompt of a chat-like request, as far as the choice of a provider depends on it. */
export class CachedPrompt {
  private readonly request: PromptRequest;

  constructor(request: PromptRequest) {
    this.request = request;
  }

  /**
   * Returns a hash of the prefix that providers cache, where the request marks one, or `isCached`
   * says that they cache what they are sent; undefined where there is none.
   */
  prefixHash(isCached: () => boolean): string | undefined {
    const marked = marksOf(this.request);
    if (marked === "none" && !isCached()) return undefined;
    return prefixHash(this.request.body, { withFirstMessage: marked !== "instructions" });
  }

  /** Returns the provider that sealed the latest reasoning; undefined where none is sealed. */
  sealedBy(): string | undefined {
    const { text } = this.request;
    let start = text.lastIndexOf(sealStart);
    // A quote that is escaped is part of what a text says.
    while (start > 0 && text[start - 1] === "\\") start = text.lastIndexOf(sealStart, start - 1);
    if (start < 0) return undefined;
    const from = start + sealStart.length;
    const end = text.indexOf(":", from);
    const slug = end < 0 ? "" : text.slice(from, Math.min(end, from + 100));
    return /^[a-z0-9.-]+$/.test(slug) ? slug : undefined;
  }
}

/** The start of a JSON text that the gateway sealed (`sealWithProvenance`), as clients return it. */
const sealStart = '"gw1:';

/**
 * The part of the prompt whose end the request marks for a cache. Within a text the quotes of a
 * marker's name are escaped, so that none is found there.
 */
function marksOf({ text }: PromptRequest): "none" | "instructions" | "messages" {
  if (!hasMark(text)) return "none";
  const said = memberText(text, "messages") ?? memberText(text, "input") ?? "";
  return hasMark(said) ? "messages" : "instructions";
}

const hasMark = (text: string): boolean =>
  text.includes('"cache_control":') || text.includes('"prompt_cache_breakpoint":');

/** Matches a marker; it moves on as a conversation grows. */
const mark =
  /,"(?:cache_control|prompt_cache_breakpoint)":\{[^}]*\}|"(?:cache_control|prompt_cache_breakpoint)":\{[^}]*\},?/g;

/** Returns a hash of the tools and instructions, and of the first message after them. */
function prefixHash(body: Fields, { withFirstMessage }: { withFirstMessage: boolean }): string {
  const said = listOf(body["messages"] ?? body["input"]);
  const first = said.findIndex((message) => !isInstruction(message));
  const leading = first < 0 ? said : said.slice(0, first + (withFirstMessage ? 1 : 0));
  const parts = [
    body["tools"],
    contentOf(body["system"] ?? body["instructions"]),
    ...leading.map((message) => contentOf((Object(message) as Fields)["content"] ?? message)),
  ];
  const text = JSON.stringify(parts).replace(mark, "").slice(0, hashedCharactersMax);
  return Bun.hash.wyhash(text).toString(36);
}

const listOf = (value: unknown): readonly unknown[] =>
  Array.isArray(value) ? value : value === undefined ? [] : [value];

const isInstruction = (message: unknown): boolean => {
  const { role } = Object(message) as Fields;
  return role === "system" || role === "developer";
};

/**
 * Returns content as a list of blocks: clients write a text as a list once they mark it. Claude
 * Code's billing line is left out, since it changes with every request.
 */
function contentOf(content: unknown): unknown {
  if (typeof content === "string") return [{ type: "text", text: content }];
  if (!Array.isArray(content)) return content;
  return content.filter((block) => {
    const { text } = Object(block) as Fields;
    return !(typeof text === "string" && isBillingLine(text));
  });
}
