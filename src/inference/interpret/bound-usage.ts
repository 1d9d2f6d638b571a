import {
  totalInputTokens,
  totalOutputTokens,
  type MeteredUsage,
  type Usage,
} from "../canonical/usage.ts";
import type { InterpretedRoute } from "./interpretation.ts";

/** The window that is assumed where the catalog names none: that of the largest models. */
const windowTokensDefault = 2_000_000;

/**
 * A count so many times the model's window is no count of tokens. Less than that may be: catalogs
 * are late, and a window that was raised must not make requests cheaper.
 */
const absurdWindows = 10;

const inputParts = [
  "inputTokens",
  "cacheReadTokens",
  "cacheWriteTokens",
  "cacheWriteOneHourTokens",
  "inputAudioTokens",
  "inputImageTokens",
] as const;
const outputParts = [
  "outputTokens",
  "reasoningTokens",
  "outputAudioTokens",
  "outputImageTokens",
] as const;

/** Tokens that a candidate can take in, and can give out, in one request. */
export const windowTokensOf = ({ route, model }: InterpretedRoute): number =>
  route.contextLength || model.contextLength || windowTokensDefault;

/**
 * Usage that the model could have had: where a provider reports many times what fits its window,
 * the counts are cut to the window and flagged, so that no balance is emptied by a provider's
 * error.
 */
export function boundUsage(metered: MeteredUsage, windowTokens: number): MeteredUsage {
  const { usage } = metered;
  const most = windowTokens * absurdWindows;
  if (totalInputTokens(usage) <= most && totalOutputTokens(usage) <= most) return metered;
  return {
    ...metered,
    usage: { ...cut(usage, inputParts, windowTokens), ...cut(usage, outputParts, windowTokens) },
    clamped: true,
  };
}

/** The parts of one side, cut so that together they fit; absent ones stay absent. */
function cut(usage: Usage, parts: readonly (keyof Usage)[], most: number): Usage {
  let left = most;
  const kept: Usage = {};
  for (const part of parts) {
    const count = usage[part];
    if (count === undefined) continue;
    kept[part] = Math.min(count, left);
    left -= kept[part];
  }
  return kept;
}
