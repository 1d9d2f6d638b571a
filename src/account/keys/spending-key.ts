import type { SpendingKey } from "../ledger/ledger.ts";
import { limitWindowHours, type LlmKey } from "./llm-key.ts";

/** A key as the ledger charges it. */
export const spendingKeyOf = ({
  id,
  limitNanoUsd,
  limitReset,
  includeByokInLimit,
}: LlmKey): SpendingKey => ({
  keyId: id,
  keyLimit:
    limitNanoUsd === null
      ? null
      : { limitNano: limitNanoUsd, windowHours: limitWindowHours(limitReset) },
  countsByok: includeByokInLimit,
});
