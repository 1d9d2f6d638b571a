import type { CallToolResult } from "@modelcontextprotocol/client";
import type { ConfiguredSearch } from "../../platform/config/search-settings.ts";
import {
  defaultResultBytes,
  type ToolDefinition,
  type UpstreamServer,
} from "../gateway/upstream-server.ts";
import { type FoundPage, searchWeb } from "./web-search.ts";

/** The id under which records and analytics count searches. */
const searchId = "search";

/** The search of the web, as a tool of a model. */
export const searchDefinition: ToolDefinition = {
  name: "web_search",
  description:
    "Searches the web and returns pages with their addresses. Cite a page that you use as a Markdown link to its address.",
  inputSchema: {
    type: "object",
    properties: { query: { type: "string", description: "What to search for." } },
    required: ["query"],
  },
  annotations: { readOnlyHint: true },
};

/** Returns the search as what a call is made of, held and charged by its price. */
export const searchServer = (search: ConfiguredSearch): UpstreamServer => ({
  id: searchId,
  name: search.provider,
  workspaceId: null,
  target: { transport: "search", search },
  auth: { type: "none" },
  allowedTools: null,
  priceNanoUsd: search.priceNanoUsd,
  timeoutMs: search.timeoutMs,
  resultBytesMax: defaultResultBytes,
  createdAtMs: null,
  updatedAtMs: null,
});

const pageText = ({ title, url, text, age }: FoundPage, index: number): string =>
  `${index + 1}. ${title}\n${url}${age === undefined ? "" : `\n${age}`}\n${text}`;

/** Returns pages as a model is sent them. */
export const pagesText = (pages: readonly FoundPage[]): string =>
  pages.length === 0 ? "Nothing was found." : pages.map(pageText).join("\n\n");

/** Searches the web, and returns the pages as the result of a tool. Throws `SearchFailure`. */
export async function searchResult(
  search: ConfiguredSearch,
  { given, signal }: { given: Readonly<Record<string, unknown>>; signal: AbortSignal },
): Promise<CallToolResult> {
  const { query } = given;
  if (typeof query !== "string" || query.trim() === "")
    return { content: [{ type: "text", text: "query: is required" }], isError: true };
  const pages = await searchWeb(search, { query: query.slice(0, 400), signal });
  return { content: [{ type: "text", text: pagesText(pages) }], structuredContent: { pages } };
}
