import { mediaParts, type Usage, type UsagePart } from "../kernel/usage.ts";
import type { MetricDefinition } from "./exposition.ts";
import { type CounterCell, counterFamily, type MetricFamily } from "./metric-family.ts";

/** Labels that an operator may ask for: each makes a series for every value. */
export const usageLabels = ["workspace", "key", "model"] as const;

/** One of these labels. */
export type UsageLabel = (typeof usageLabels)[number];

/** A request as these metrics count it. Ids are those of the workspace, the key and the catalog. */
export interface LabelledUsage extends Readonly<Record<UsageLabel, string>> {
  tokens?: Usage | undefined;
  chargedNanoUsd?: bigint | undefined;
}

/** Options of usage metrics. */
export interface UsageMetricsOptions {
  labels: readonly UsageLabel[];
  /** The most combinations of label values; requests of further ones are counted as `other`. */
  seriesMax: number;
}

/** A part of the usage that counts tokens. */
export type TokenPart = keyof typeof tokenKinds;

/** The label value of each kind of token. */
export const tokenKinds = {
  inputTokens: "input",
  cacheReadTokens: "cache_read",
  cacheReadAudioTokens: "cache_read_audio",
  cacheReadImageTokens: "cache_read_image",
  cacheWriteTokens: "cache_write",
  cacheWriteOneHourTokens: "cache_write_one_hour",
  inputAudioTokens: "input_audio",
  inputImageTokens: "input_image",
  outputTokens: "output",
  reasoningTokens: "reasoning",
  outputAudioTokens: "output_audio",
  outputImageTokens: "output_image",
} as const satisfies Partial<Record<UsagePart, string>>;

/** Every part of the usage that counts tokens. */
export const tokenNames = Object.keys(tokenKinds) as TokenPart[];

/** The label value of each kind of pictures and sound, with its unit. */
const mediaKinds = {
  outputImages: "images",
  inputAudioMs: "input_audio_ms",
  outputAudioMs: "output_audio_ms",
  characters: "characters",
  outputVideoMs: "output_video_ms",
} as const satisfies Record<(typeof mediaParts)[number], string>;

/** Returns what a request used of pictures, sound and characters, by kind. */
export function mediaCounts(usage: Usage): (readonly [kind: string, count: number])[] {
  const counts: (readonly [string, number])[] = [];
  for (const part of mediaParts) {
    const count = usage[part];
    if (count !== undefined && count > 0) counts.push([mediaKinds[part], count]);
  }
  return counts;
}

/**
 * Requests, tokens and charges by the labels that an operator asked for. The number of series is
 * bounded, since every workspace and key makes some.
 */
export class UsageMetrics {
  private readonly labels: readonly UsageLabel[];
  private readonly seriesMax: number;
  private readonly requests: MetricFamily<CounterCell>;
  private readonly tokens: MetricFamily<CounterCell>;
  private readonly media: MetricFamily<CounterCell>;
  private readonly charged: MetricFamily<CounterCell>;
  private readonly known = new Set<string>();
  private readonly others: readonly string[];

  constructor({ labels, seriesMax }: UsageMetricsOptions) {
    this.labels = labels;
    this.seriesMax = seriesMax;
    this.others = labels.map(() => "other");
    this.requests = counterFamily(...labels);
    this.tokens = counterFamily(...labels, "kind");
    this.media = counterFamily(...labels, "kind");
    this.charged = counterFamily(...labels);
  }

  /** Counts a settled request. */
  record(usage: LabelledUsage): void {
    const values = this.within(this.labels.map((label) => usage[label]));
    this.requests.at(...values).value += 1;
    if (usage.chargedNanoUsd !== undefined)
      this.charged.at(...values).value += Number(usage.chargedNanoUsd);
    for (const name of tokenNames) {
      const count = usage.tokens?.[name] ?? 0;
      if (count > 0) this.tokens.at(...values, tokenKinds[name]).value += count;
    }
    for (const [kind, count] of mediaCounts(usage.tokens ?? {}))
      this.media.at(...values, kind).value += count;
  }

  /** Names and help texts, which operators' dashboards depend on. */
  definitions(): MetricDefinition[] {
    const counter = (
      name: string,
      help: string,
      family: MetricFamily<CounterCell>,
    ): MetricDefinition => ({
      kind: "counter",
      name: `switchyard_usage_${name}`,
      help,
      family,
    });
    const by = "by the labels of telemetry.usage_labels";
    return [
      counter("requests_total", `Settled inference requests, ${by}.`, this.requests),
      counter("tokens_total", `Tokens metered, in disjoint kinds, ${by}.`, this.tokens),
      counter(
        "media_units_total",
        `Pictures, milliseconds of sound and characters metered, by kind and ${by}.`,
        this.media,
      ),
      counter(
        "charged_nano_usd_total",
        `Charges in billionths of a US dollar, ${by}.`,
        this.charged,
      ),
    ];
  }

  private within(values: readonly string[]): readonly string[] {
    const series = values.join("\n");
    if (this.known.has(series)) return values;
    if (this.known.size >= this.seriesMax) return this.others;
    this.known.add(series);
    return values;
  }
}
