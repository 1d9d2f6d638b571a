import type { ServedWhole } from "../../execution.ts";
import { showsNoCost } from "../../shows-no-cost.ts";
import type { KeptAnswer } from "./answer-cache.ts";

const head = (id: string): string => `{"id":${JSON.stringify(id)}`;

/** What is kept of an answer: everything but its id, at no cost, since it is not billed a second time. */
export function keptAnswerOf({ answer, candidate, metered, settled }: ServedWhole): KeptAnswer {
  const { model, route } = candidate;
  const text = answer.render({
    id: "",
    model: model.id,
    metered,
    chargedNano: 0n,
    free: showsNoCost({ settled, candidate }),
    fallback: undefined,
    metadataText: () => "{}",
  });
  return {
    tail: text.slice(head("").length),
    model: model.id,
    provider: route.provider.id,
    upstreamModel: route.upstreamModel,
  };
}

/** The body of a kept answer under another id. */
export const keptText = (id: string, tail: string): string => head(id) + tail;
