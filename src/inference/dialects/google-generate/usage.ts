import type { JsonObject } from "../../canonical/json.ts";
import { editMembers } from "../../../platform/kernel/json/json-members.ts";
import { usdFromNano } from "../../../platform/kernel/money.ts";
import { totalInputTokens, totalOutputTokens, type Usage } from "../../../platform/kernel/usage.ts";
import type { GatewayFacts, MeteredUsage } from "../../canonical/response.ts";
import { CountReader, asArray, asObject, withoutUndefined } from "../shared/wire-fields.ts";

/**
 * Reads `usageMetadata` as disjoint counts. The prompt's count includes cached tokens, the
 * candidates' count excludes reasoning, and tokens of built-in tools are counted beside both. Zeros
 * are omitted on the wire, as in protocol buffers. Undefined when the value has no usage. Source:
 * ai.google.dev/api/generate-content#UsageMetadata (2026-11).
 */
export function readUsage(value: unknown): MeteredUsage | undefined {
  const fields = asObject(value);
  if (fields === undefined) return undefined;
  const counts = new CountReader();
  const prompt = counts.read(fields.promptTokenCount);
  const candidates = counts.read(fields.candidatesTokenCount);
  const thoughts = counts.read(fields.thoughtsTokenCount);
  if (prompt === undefined && candidates === undefined && thoughts === undefined) return undefined;
  const usage: Usage = prompt === undefined ? {} : readInput(fields, { prompt, counts });
  readOutput(fields, { candidates: candidates ?? 0, counts, usage });
  if (thoughts !== undefined) usage.reasoningTokens = thoughts;
  return { usage, estimated: false, clamped: counts.clamped };
}

/** Returns whether `usageMetadata` has any count that `readUsage` uses. */
export function hasUsage({
  promptTokenCount,
  candidatesTokenCount,
  thoughtsTokenCount,
}: JsonObject): boolean {
  return (
    isNumber(promptTokenCount) || isNumber(candidatesTokenCount) || isNumber(thoughtsTokenCount)
  );
}

const isNumber = (value: unknown): boolean => typeof value === "number" && !Number.isNaN(value);

function readInput(
  fields: JsonObject,
  { prompt, counts }: { prompt: number; counts: CountReader },
): Usage {
  const cached = counts.read(fields.cachedContentTokenCount);
  const fromTools = counts.read(fields.toolUsePromptTokenCount) ?? 0;
  const cacheRead = cached === undefined ? undefined : counts.within(cached, prompt);
  let left = prompt - (cacheRead ?? 0);
  const take = (modality: string): number | undefined => {
    const count = modalityCount(fields.promptTokensDetails, { modality, counts });
    if (count === undefined) return undefined;
    const uncached = Math.max(
      0,
      count - (modalityCount(fields.cacheTokensDetails, { modality, counts }) ?? 0),
    );
    const taken = Math.min(uncached, left);
    left -= taken;
    return taken;
  };
  const audio = take("AUDIO");
  const image = take("IMAGE");
  const usage: Usage = { inputTokens: left + fromTools };
  if (cacheRead !== undefined) usage.cacheReadTokens = cacheRead;
  if (audio !== undefined) usage.inputAudioTokens = audio;
  if (image !== undefined) usage.inputImageTokens = image;
  return usage;
}

function readOutput(
  fields: JsonObject,
  { candidates, counts, usage }: { candidates: number; counts: CountReader; usage: Usage },
): void {
  const details = fields.candidatesTokensDetails;
  const audio = modalityCount(details, { modality: "AUDIO", counts });
  const image = modalityCount(details, { modality: "IMAGE", counts });
  const taken = counts.within((audio ?? 0) + (image ?? 0), candidates);
  if (taken < (audio ?? 0) + (image ?? 0)) {
    usage.outputTokens = candidates;
    return;
  }
  usage.outputTokens = candidates - taken;
  if (audio !== undefined) usage.outputAudioTokens = audio;
  if (image !== undefined) usage.outputImageTokens = image;
}

function modalityCount(
  details: unknown,
  { modality, counts }: { modality: string; counts: CountReader },
): number | undefined {
  if (details === undefined) return undefined;
  const entry = (asArray(details) ?? []).map(asObject).find((one) => one?.modality === modality);
  return counts.read(entry?.tokenCount);
}

/**
 * Encodes `usageMetadata` of an answer, with the charge: every version of Google's clients keeps or
 * ignores its unknown members (@google/genai 1.30, 2.32 and 3.3, google-genai 3.6).
 */
export function encodeUsage({ usage }: MeteredUsage, gateway: GatewayFacts = {}): JsonObject {
  const { cacheReadTokens, reasoningTokens } = usage;
  const { cacheReadAudioTokens = 0, cacheReadImageTokens = 0 } = usage;
  const { inputAudioTokens = 0, inputImageTokens = 0 } = usage;
  const output = totalOutputTokens(usage);
  const input = totalInputTokens(usage);
  const candidates = output - (reasoningTokens ?? 0);
  const cachedMedia = cacheReadAudioTokens + cacheReadImageTokens;
  const cached = cachedMedia > 0 ? cachedMedia + (cacheReadTokens ?? 0) : cacheReadTokens;
  return withoutUndefined<JsonObject>({
    promptTokenCount: input,
    cachedContentTokenCount: cached,
    candidatesTokenCount: candidates,
    thoughtsTokenCount: reasoningTokens,
    totalTokenCount: input + output,
    promptTokensDetails: byModality(input, {
      AUDIO: inputAudioTokens + cacheReadAudioTokens,
      IMAGE: inputImageTokens + cacheReadImageTokens,
    }),
    cacheTokensDetails: byModality(cached ?? 0, {
      AUDIO: cacheReadAudioTokens,
      IMAGE: cacheReadImageTokens,
    }),
    candidatesTokensDetails: byModality(candidates, {
      AUDIO: usage.outputAudioTokens ?? 0,
      IMAGE: usage.outputImageTokens ?? 0,
    }),
    cost: gateway.costUsd,
    cost_details:
      gateway.upstreamCostUsd === undefined
        ? undefined
        : { upstream_inference_cost: gateway.upstreamCostUsd },
  });
}

/** Returns tokens by what they are of; undefined where all are of text. */
function byModality(
  all: number,
  media: Readonly<Record<string, number>>,
): JsonObject[] | undefined {
  const counted = Object.entries(media).filter(([, tokenCount]) => tokenCount > 0);
  if (counted.length === 0) return undefined;
  const text = counted.reduce((left, [, tokenCount]) => left - tokenCount, all);
  return [...(text > 0 ? [["TEXT", text] as const] : []), ...counted].map(
    ([modality, tokenCount]) => ({ modality, tokenCount }),
  );
}

/**
 * Returns the JSON text of the usage that the client is shown: the provider's own, with the charge
 * in USD; the gateway's where the provider's cannot be shown.
 */
export function pricedUsageText(options: {
  original: string | undefined;
  metered: MeteredUsage;
  chargedNano: bigint;
}): string {
  const { original, metered, chargedNano } = options;
  const usable = original?.startsWith("{") === true && !metered.clamped && !metered.estimated;
  const base = usable ? original : JSON.stringify(encodeUsage(metered));
  return editMembers(base, new Map([["cost", JSON.stringify(usdFromNano(chargedNano))]]));
}
