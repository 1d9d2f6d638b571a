import type { Fields } from "../../../support/strict-vendors/rule.ts";
import type { ReceivedRequest } from "../../../support/strict-vendors/strict-upstream.ts";
import { fieldsOf, listOf } from "../../../support/strict-vendors/reading.ts";

/** How many tokens of a prompt there are, and how many of them a provider had cached. */
export interface PromptTokens {
  all: number;
  cached: number;
}

/**
 * A provider's prompt cache: it knows every prefix of every prompt that it was sent, up to the last
 * marker where the prompt marks what to cache.
 */
export class PromptCache {
  private readonly prefixes = new Set<bigint>();

  /** Counts a prompt and caches it. */
  read(request: ReceivedRequest): PromptTokens {
    const parts = partsOf(request);
    const end = request.endpoint === "messages" ? 1 + parts.findLastIndex(isMarked) : parts.length;
    const counts = { all: 0, cached: 0 };
    let prefix = 0n;
    for (const [index, part] of parts.entries()) {
      const text = JSON.stringify(part, (key: string, value: unknown) =>
        key === "cache_control" ? undefined : value,
      );
      prefix = Bun.hash.wyhash(text, prefix);
      counts.all += Math.ceil(text.length / 4);
      if (index >= end) continue;
      if (this.prefixes.has(prefix)) counts.cached = counts.all;
      this.prefixes.add(prefix);
    }
    return counts;
  }
}

const isMarked = (part: Fields): boolean => "cache_control" in part;

/** Returns the parts of a prompt in the order in which vendors read them. */
function partsOf({ body }: ReceivedRequest): Fields[] {
  const instructions = body["system"] ?? body["instructions"] ?? body["systemInstruction"];
  const turns = listOf(body["messages"] ?? body["input"] ?? body["contents"]);
  return [
    ...listOf(body["tools"]),
    ...(Array.isArray(instructions) ? listOf(instructions) : [{ instructions }]),
    ...turns.flatMap(({ content, parts, ...turn }) => [
      turn,
      ...(typeof content === "string" ? [{ content }] : listOf(content ?? parts).map(fieldsOf)),
    ]),
  ];
}
