import type { Loss } from "../../canonical/loss.ts";
import { fieldsOf, listOf } from "../read-fields.ts";
import type { RerankRequest } from "./rerank-request.ts";

/** A document's place among those of the request, and how well it fits. */
export interface RankedDocument {
  index: number;
  score: number;
}

/** What an answer holds, as far as it is used. */
export interface RankedPart {
  ranked: readonly RankedDocument[];
  /** Cohere's unit of billing, one query with up to 100 documents; undefined where the provider has none. */
  searchUnits?: number | undefined;
  id?: string;
}

/** How one vendor is asked to rank. Its page is named beside each dialect. */
export interface RerankDialect {
  encode(request: RerankRequest, upstreamModel: string): { body: object; losses: readonly Loss[] };
  /** Undefined when the body is no answer of the dialect. */
  decode(body: object): RankedPart | undefined;
}

/** A list of `{index, relevance_score}`; undefined when it is none. */
export function readRanked(value: unknown): RankedDocument[] | undefined {
  const ranked: RankedDocument[] = [];
  const list = listOf(value);
  if (list === undefined) return undefined;
  for (const entry of list) {
    const { index, relevance_score: score } = fieldsOf(entry);
    if (
      typeof index !== "number" ||
      !Number.isInteger(index) ||
      typeof score !== "number" ||
      !Number.isFinite(score)
    )
      return undefined;
    ranked.push({ index, score });
  }
  return ranked;
}

/** Characters that make a token, as the contract's billing has it. */
const charactersPerToken = 4;

/** The documents, cut to `max_tokens_per_doc` for a vendor that has no such field. */
export function cutDocuments({ documents, maxTokensPerDocument: most }: RerankRequest): {
  texts: readonly string[];
  losses: readonly Loss[];
} {
  if (most === undefined) return { texts: documents, losses: [] };
  const length = most * charactersPerToken;
  if (documents.every((text) => text.length <= length)) return { texts: documents, losses: [] };
  const reason = `the provider has no such field; documents were cut to ${charactersPerToken} characters a token`;
  return {
    texts: documents.map((text) => text.slice(0, length).toWellFormed()),
    losses: [{ field: "max_tokens_per_doc", reason }],
  };
}
