import type { Loss } from "../../../canonical/request.ts";
import { contentOf, isEmptied } from "../../shared/refused-thoughts.ts";
import { asArray, asObject } from "../../shared/wire-fields.ts";

type Fields = Readonly<Record<string, unknown>>;

/** The beginning of what the gateway writes in place of a seal, for the pages that it has found. */
export const ownSearchMark = "gw1:page:";

/** A conversation without the searches that its upstream did not run. */
interface OwnSearches {
  /** Undefined where the client's own text can stay as it is. */
  messages: readonly unknown[] | undefined;
  losses: readonly Loss[];
}

/**
 * Returns the messages without searches that Anthropic did not run, and without what cites them:
 * their pages lack Anthropic's seal, which it verifies and answers 400 to others.
 */
export function withoutForeignSearches(text: string, messages: unknown): OwnSearches {
  if (!Array.isArray(messages) || !text.includes('"web_search_'))
    return { messages: undefined, losses: [] };
  const results = messages.flatMap(contentOf).filter(isForeignResult);
  const foreign = new Set(results.map((result) => result["tool_use_id"]));
  const losses: Loss[] = [];
  let isChanged = false;
  const kept = messages.map((message: unknown, index): unknown => {
    const blocks = contentOf(message);
    const content = blocks.flatMap((block, position): Fields[] => {
      const { type, id, tool_use_id: useId } = block;
      const isSearch = type === "server_tool_use" || type === "web_search_tool_result";
      if (!isSearch || !foreign.has(id ?? useId)) return [withOwnCitations(block)];
      const field = `messages[${index}].content[${position}]`;
      losses.push({ field, reason: "another provider ran this search" });
      return [];
    });
    const isKept =
      content.length === blocks.length &&
      content.every((block, position) => block === blocks[position]);
    if (isKept) return message;
    isChanged = true;
    return { ...(Object(message) as Fields), content };
  });
  return isChanged
    ? { messages: kept.filter((message) => !isEmptied(message)), losses }
    : { messages: undefined, losses };
}

/** Returns whether a seal of a page is none of Anthropic's. */
const isForeign = (seal: unknown): boolean =>
  seal === "" || (typeof seal === "string" && seal.startsWith(ownSearchMark));

/** Ids of searches that Anthropic takes; it answers 400 to others. */
const ownIds = /^srvtoolu_\w+$/;

/**
 * Returns whether a block is the result of a search that Anthropic did not run. One without pages is
 * known by its id.
 */
function isForeignResult({ type, content, tool_use_id: id }: Fields): boolean {
  if (type !== "web_search_tool_result") return false;
  const pages = asArray(content) ?? [];
  return pages.length === 0
    ? !ownIds.test(String(id))
    : pages.some((page) => isForeign(asObject(page)?.encrypted_content));
}

/** Returns a block without citations that Anthropic did not write; the same where it has none. */
function withOwnCitations(block: Fields): Fields {
  const citations = asArray(block["citations"]);
  const own = citations?.filter((citation) => !isForeign(asObject(citation)?.encrypted_index));
  if (citations === undefined || own?.length === citations.length) return block;
  const { citations: _, ...rest } = block;
  return own === undefined || own.length === 0 ? rest : { ...rest, citations: own };
}
