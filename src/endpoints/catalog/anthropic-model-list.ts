import type { CatalogModel } from "../../inference/catalog/model.ts";
import { GatewayError } from "../../platform/lib/errors.ts";

/** Entries of a page where the client asks for no number, and at most (Anthropic's reference). */
const pageSizeDefault = 20;
const pageSizeMax = 1_000;

function pageSizeOf(query: URLSearchParams): number {
  const text = query.get("limit");
  if (text === null) return pageSizeDefault;
  const size = Number(text);
  if (Number.isInteger(size) && size >= 1 && size <= pageSizeMax) return size;
  throw new GatewayError("bad_request", `limit: must be an integer from 1 to ${pageSizeMax}.`, {
    param: "limit",
  });
}

/** A model as Anthropic's clients read it. */
export const anthropicModelEntry = ({ id, displayName, addedAtMs }: CatalogModel) => ({
  type: "model",
  id,
  display_name: displayName,
  created_at: new Date(addedAtMs).toISOString(),
});

/**
 * The list as Anthropic's clients read it, who are known by their `anthropic-version` header: newest
 * first, in pages between `after_id` and `before_id`. Its entries say nothing but that a model can be
 * chatted with, so others and those that are only announced are left out.
 */
export function anthropicModelList(
  models: readonly CatalogModel[],
  query: URLSearchParams,
): Record<string, unknown> {
  const callable = models.filter(({ surface, comingSoon }) => surface === "chat" && !comingSoon);
  const newestFirst = callable.toSorted(
    (a, b) => b.addedAtMs - a.addedAtMs || a.id.localeCompare(b.id),
  );
  const size = pageSizeOf(query);
  const [afterId, beforeId] = [query.get("after_id"), query.get("before_id")];
  const before = newestFirst.findIndex(({ id }) => id === beforeId);
  const start =
    beforeId === null
      ? newestFirst.findIndex(({ id }) => id === afterId) + 1
      : Math.max(0, before - size);
  const page = newestFirst.slice(start, beforeId === null ? start + size : Math.max(0, before));
  return {
    data: page.map(anthropicModelEntry),
    has_more: beforeId === null ? start + page.length < newestFirst.length : start > 0,
    first_id: page[0]?.id ?? null,
    last_id: page.at(-1)?.id ?? null,
  };
}
