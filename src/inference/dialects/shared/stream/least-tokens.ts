/** The most characters that a token is assumed to have: of a word, and of a text without spaces. */
const wordCharactersMax = 32;
const denseCharactersMax = 4;

/** Members of events, in any dialect, under which new content is found. */
const contentMembers: ReadonlySet<string> = new Set([
  "choices",
  "candidates",
  "content",
  "parts",
  "delta",
  "text",
  "refusal",
  "tool_calls",
  "function",
  "arguments",
  "partial_json",
  "toolUse",
  "input",
]);

/** The same for reasoning. */
const thoughtMembers: ReadonlySet<string> = new Set([
  "reasoning",
  "reasoning_content",
  "reasoningContent",
  "thinking",
]);

/** The fewest tokens that content can have. */
export interface LeastTokens {
  visible: number;
  thought: number;
}

/**
 * Counts the fewest tokens that a text can have with any tokenizer. No tokenizer of a
 * served model joins two words that white space separates, so every word is at least one token.
 * Repeated characters count as one. Words may be split over several pieces.
 */
export class TokenFloor {
  private inWord = false;
  private last = -1;
  private wordCharacters = 0;
  private denseCharacters = 0;

  /** Notes that the next piece may continue any word, since pieces of several answers are mixed. */
  resume(): void {
    this.inWord = true;
  }

  /** Returns the number of tokens that a piece adds. */
  add(piece: string): number {
    let tokens = 0;
    for (let index = 0; index < piece.length; index += 1) {
      const code = piece.charCodeAt(index);
      if (code <= 0x20) this.inWord = false;
      else if (code !== this.last) tokens += isDense(code) ? this.addDense() : this.addLetter();
      this.last = code;
    }
    return tokens;
  }

  private addDense(): number {
    this.inWord = true;
    this.denseCharacters = (this.denseCharacters + 1) % denseCharactersMax;
    return this.denseCharacters === 0 ? 1 : 0;
  }

  private addLetter(): number {
    this.wordCharacters = this.inWord ? (this.wordCharacters + 1) % wordCharactersMax : 1;
    const begins = !this.inWord || this.wordCharacters === 0;
    this.inWord = true;
    return begins ? 1 : 0;
  }
}

/** Returns whether a character is of a script without spaces: Chinese, Japanese or Korean. */
const isDense = (code: number): boolean =>
  (code >= 0x2e80 && code <= 0x9fff) || (code >= 0xac00 && code <= 0xd7af);

/** Returns the fewest tokens of the new content in an event's data. */
export function leastTokensOf(data: string, floor: TokenFloor): LeastTokens {
  const least: LeastTokens = { visible: 0, thought: 0 };
  if (!saysSomething(data)) return least;
  const event = parsed(withoutBytes(data));
  const isThought = typeof event.type === "string" && event.type.includes("reasoning");
  for (const [text, thought] of textsIn(event, { isThought, found: new Map() }))
    least[thought ? "thought" : "visible"] += floor.add(text);
  return least;
}

/** Characters from which an event is searched for base64, which takes as long to parse as text. */
const longCharacters = 64 * 1024;

/**
 * Returns an event's data without the base64 of its data URLs, which are no tokens of text. A string
 * with escapes or spaces is no base64, and stays.
 */
function withoutBytes(data: string): string {
  if (data.length < longCharacters) return data;
  const mark = ";base64,";
  let rest = "";
  let from = 0;
  for (let at = data.indexOf(mark); at >= 0; at = data.indexOf(mark, from)) {
    const start = at + mark.length;
    const end = data.indexOf('"', start);
    if (end < 0) break;
    const bytes = data.slice(start, end);
    rest +=
      bytes.includes("\\") || bytes.includes(" ") ? data.slice(from, end) : data.slice(from, start);
    from = end;
  }
  return rest + data.slice(from);
}

function parsed(data: string): { type?: unknown } {
  try {
    return Object(JSON.parse(data)) as { type?: unknown };
  } catch {
    return {};
  }
}

/** Collects texts, each once, since some servers send reasoning under two names. */
function textsIn(
  value: unknown,
  { isThought, found }: { isThought: boolean; found: Map<string, boolean> },
): Map<string, boolean> {
  if (typeof value === "string") found.set(value, isThought);
  else if (Array.isArray(value))
    for (const element of value) textsIn(element, { isThought, found });
  else if (typeof value === "object" && value !== null) {
    const thinks = isThought || ("thought" in value && value.thought === true);
    for (const [name, member] of Object.entries(value)) {
      if (contentMembers.has(name)) textsIn(member, { isThought: thinks, found });
      else if (thoughtMembers.has(name)) textsIn(member, { isThought: true, found });
    }
  }
  return found;
}

/**
 * Returns whether an event has new content, in any dialect; events that only repeat content have
 * neither member.
 */
export const saysSomething = (data: string): boolean =>
  data.includes('"delta"') || data.includes('"candidates"');

/**
 * Returns whether an event carries a picture or sound, whose length says nothing about its tokens.
 */
export const holdsMedia = (data: string): boolean =>
  data.length > 4_096 && /"(?:images?|audio|inlineData|image_url)"/.test(data);
