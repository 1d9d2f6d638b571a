import { z } from "zod";
import { similarity } from "../text-vector.ts";
import { estimateTokens } from "../tokens.ts";
import { openaiSurface } from "./plain-surface.ts";

const rerankBody = z.object({
  model: z.string(),
  query: z.string().min(1),
  documents: z.array(z.union([z.string(), z.object({ text: z.string() })])).min(1),
  top_n: z.int().min(1).nullish(),
  return_documents: z.boolean().nullish(),
});

/**
 * Jina's `POST /v1/rerank`: documents rank by the words that they have in common with the query.
 */
export const rerank = openaiSurface((body) => {
  const request = rerankBody.parse(body);
  const texts = request.documents.map((document) =>
    typeof document === "string" ? document : document.text,
  );
  const tokenCount = [request.query, ...texts].reduce((sum, text) => sum + estimateTokens(text), 0);
  return {
    text: request.query,
    answer: () => ({
      model: request.model,
      usage: { total_tokens: tokenCount },
      results: texts
        .map((text, index) => ({
          index,
          relevance_score: similarity(request.query, text),
          ...(request.return_documents ? { document: { text } } : {}),
        }))
        .sort(
          (one, other) => other.relevance_score - one.relevance_score || one.index - other.index,
        )
        .slice(0, request.top_n ?? texts.length),
    }),
  };
});
