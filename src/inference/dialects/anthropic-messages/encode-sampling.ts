import type { JsonObject } from "../../canonical/json.ts";
import type { Sampling } from "../../canonical/request.ts";
import type { EncodeState } from "../encode-state.ts";
import { joined } from "../without-undefined.ts";
import { claudeAbilities } from "./claude-model.ts";

/** Parameters that Messages has no word for. */
const unsaid: readonly (readonly [key: keyof Sampling, field: string])[] = [
  ["minP", "min_p"],
  ["topA", "top_a"],
  ["frequencyPenalty", "frequency_penalty"],
  ["presencePenalty", "presence_penalty"],
  ["repetitionPenalty", "repetition_penalty"],
  ["seed", "seed"],
  ["logitBias", "logit_bias"],
];

/** How the next token is drawn, within what the model takes, and where it stops. */
export function encodeSampling(state: EncodeState, { thinks }: { thinks: boolean }): JsonObject {
  const { sampling = {}, stop } = state.request;
  for (const [key, field] of unsaid)
    if (sampling[key] !== undefined) state.lose(field, "messages has no such field");
  return joined<JsonObject>(samplers(state, { sampling, thinks }), {
    stop_sequences: stopTexts(state, stop),
  });
}

function samplers(
  state: EncodeState,
  { sampling, thinks }: { sampling: Sampling; thinks: boolean },
): JsonObject {
  const { temperature, topP, topK } = sampling;
  const { refusesSampling, takesOneSampler } = claudeAbilities(state.options.upstreamModel);
  if (refusesSampling || (thinks && !state.sameDialect)) {
    const reason = refusesSampling
      ? "the model takes no sampling parameters"
      : "a model that thinks takes no sampling parameters";
    if (temperature !== undefined && temperature !== 1) state.lose("temperature", reason);
    if (topP !== undefined && topP !== 1) state.lose("top_p", reason);
    if (topK !== undefined) state.lose("top_k", reason);
    return {};
  }
  const both =
    temperature !== undefined && topP !== undefined && takesOneSampler && !state.sameDialect;
  if (both) state.lose("top_p", "the model takes it or a temperature, not both");
  if (temperature !== undefined && temperature > 1) state.lose("temperature", "at most 1 here");
  return {
    temperature: temperature === undefined ? undefined : Math.min(1, temperature),
    top_p: both ? undefined : topP,
    top_k: topK,
  };
}

/** Anthropic refuses stop texts of white space alone. */
function stopTexts(
  state: EncodeState,
  stop: readonly string[] | undefined,
): readonly string[] | undefined {
  const written = stop?.filter((text, index) => {
    if (text.trim() === "")
      state.lose(`stop[${index}]`, "messages takes no stop text of white space alone");
    return text.trim() !== "";
  });
  return written?.length ? written : undefined;
}
