import type { ServedWhole } from "./execution.ts";

/**
 * Whether an answer has no `usage.cost` where free models show none (contract: `POST /embeddings`): its model is free,
 * or has no price. What a provider key paid has a cost of 0.
 */
export const showsNoCost = ({
  settled,
  candidate: { credential, route },
}: Pick<ServedWhole, "settled" | "candidate">): boolean =>
  settled.free && (credential === undefined || route.price === undefined);
