import type { CacheMarker } from "../../canonical/message.ts";
import type { Extensions } from "../../canonical/dialect-id.ts";
import type { CanonicalRequest } from "../../canonical/request.ts";
import type { DialectDeviations } from "../deviations.ts";
import type { EncodeRequestOptions } from "../dialect.ts";
import { EncodePlace, EncodeState } from "../shared/encode-state.ts";
import { legalName, type NamedTool } from "../shared/tools.ts";

/** Gemini's limit of function name length. */
const toolNameLengthMax = 64;

/** The properties of a message, a part or a tool beside its content. */
interface Decoration {
  cache?: CacheMarker | undefined;
  extensions?: Extensions | undefined;
  name?: string;
}

/** The state that the steps of encoding one request for Gemini share. */
export class GeminiState extends EncodeState {
  readonly traits: GeminiTraits;

  constructor(request: CanonicalRequest, options: EncodeRequestOptions) {
    super(request, options, { id: "google-generate", toolNameLengthMax, wrapsCustom: true });
    this.traits = geminiTraits(options.upstreamModel);
  }

  /** Declares a field as lost where it has a value. */
  loseIfSet(field: string, value: unknown): void {
    if (value !== undefined) this.lose(field, "Gemini has no such field");
  }

  /**
   * Returns a name that Gemini accepts: unlike elsewhere, it has to begin with a letter or an
   * underscore.
   */
  wireName(tool: NamedTool): string {
    const wire = this.namer.wireName(tool);
    if (/^[a-zA-Z_]/.test(wire)) return wire;
    const prefixed = legalName(`_${wire}`, toolNameLengthMax);
    const { aliases } = this.namer;
    aliases.set(prefixed, aliases.get(wire) ?? { name: tool.name });
    return prefixed;
  }

  override at(path: string): GeminiPlace {
    return new GeminiPlace(this, path);
  }
}

/** A place in the canonical request that is being encoded, to which losses refer. */
export class GeminiPlace extends EncodePlace {
  declare readonly state: GeminiState;

  override at(suffix: string): GeminiPlace {
    return new GeminiPlace(this.state, this.path + suffix);
  }

  /**
   * Declares what accompanies the content here: Gemini caches by itself and knows neither names nor
   * other fields.
   */
  loseDecoration({ cache, extensions, name }: Decoration): void {
    if (cache !== undefined) this.state.lose("cache_control", "Gemini caches by itself");
    if (name !== undefined) this.at(".name").lose("Gemini has no such field");
    this.extensionFields(extensions);
  }
}

/** Gemini's levels of reasoning, least first. */
export const thinkingLevels = ["MINIMAL", "LOW", "MEDIUM", "HIGH"] as const;

type ThinkingLevel = (typeof thinkingLevels)[number];

/** The differences between generations of Gemini on the wire. */
interface GeminiTraits {
  /** The bound of reasoning: a number of tokens, the name of a level, or none. */
  thinking: "budget" | "level" | "none";
  /** The bounds of `thinkingBudget`. */
  budgetTokens: { min: number; max: number };
  /** Whether reasoning can be turned off. */
  canStopThinking: boolean;
  /** The levels that are not answered with 400, least first. */
  levels: readonly ThinkingLevel[];
  /**
   * Whether calls and results carry an id; Gemini 2 answers 400 "Unknown name" to it on Vertex AI.
   */
  callIds: boolean;
  /**
   * Whether JSON may be requested while functions are offered; 400 "Function calling with a
   * response mime type" elsewhere.
   */
  formatBesideTools: boolean;
  /**
   * Whether frequency and presence penalties are accepted; 400 "Penalty is not enabled for this
   * model" elsewhere.
   */
  penalties: boolean;
  /**
   * Whether a conversation may end in the model's own turn; 400 "Requests ending with a model turn
   * are not supported" elsewhere. Source: ai.google.dev, whats-new-gemini-3.6 (2026-07).
   */
  prefill: boolean;
  /**
   * Whether a search may be offered beside functions; 400 "Tool call context circulation is not
   * enabled" elsewhere. Source: ai.google.dev/gemini-api/docs/tool-combination (2026-11).
   */
  searchBesideFunctions: boolean;
  /**
   * Whether results of functions may carry pictures and documents; 400 elsewhere. Sources:
   * maximhq/bifrost#4202 (2026-06), agentjido/req_llm#701 (2026-05).
   */
  mediaInResults: boolean;
  /** Whether the first call of every step must carry a thought signature, or the answer is 400. */
  needsSignatures: boolean;
}

const newest: GeminiTraits = {
  thinking: "level",
  budgetTokens: { min: 128, max: 32_768 },
  canStopThinking: false,
  levels: ["LOW", "MEDIUM", "HIGH"],
  callIds: true,
  formatBesideTools: true,
  penalties: false,
  prefill: false,
  searchBesideFunctions: true,
  mediaInResults: true,
  needsSignatures: true,
};

const older = {
  callIds: false,
  formatBesideTools: false,
  prefill: true,
  searchBesideFunctions: false,
  mediaInResults: false,
  needsSignatures: false,
} as const;

/**
 * Returns the traits of a model by its wire name; unknown names count as the newest generation.
 * Source: ai.google.dev/gemini-api/docs/thinking and .../thought-signatures (2026-11).
 */
function geminiTraits(upstreamModel: string): GeminiTraits {
  const name = upstreamModel.slice(upstreamModel.lastIndexOf("/") + 1);
  const gemma = Number(/^gemma-(\d+)/.exec(name)?.[1] ?? NaN);
  if (gemma >= 4) return { ...newest, ...older, levels: thinkingLevels };
  if (/^(?:gemma|learnlm)/.test(name)) return { ...newest, ...older, thinking: "none" };
  const isFlash = name.includes("flash");
  const generation = Number(/^gemini-(\d+(?:\.\d+)?)/.exec(name)?.[1] ?? Infinity);
  if (generation >= 3)
    return {
      ...newest,
      levels: levelsOf(name, { isFlash, generation }),
      prefill: generation < 3.6 && !name.startsWith("gemini-3.5-flash-lite"),
    };
  if (generation < 2.5) return { ...newest, ...older, thinking: "none", penalties: true };
  if (/image|tts/.test(name)) return { ...newest, ...older, thinking: "none" };
  if (!isFlash) return { ...newest, ...older, thinking: "budget" };
  const min = name.includes("lite") ? 512 : 1;
  return {
    ...newest,
    ...older,
    thinking: "budget",
    budgetTokens: { min, max: 24_576 },
    canStopThinking: true,
  };
}

/** Returns the levels of a model of the third generation; from 3.7 on, Flash has no least one. */
function levelsOf(
  name: string,
  { isFlash, generation }: { isFlash: boolean; generation: number },
): readonly ThinkingLevel[] {
  if (isFlash && name.includes("image")) return ["MINIMAL", "HIGH"];
  return isFlash && (generation < 3.7 || name.includes("lite")) ? thinkingLevels : newest.levels;
}

/** Returns whether a model searches where it is offered functions too. */
export const searchesBesideFunctions = (
  upstreamModel: string,
  { searchesAlone }: DialectDeviations,
): boolean => searchesAlone !== true && geminiTraits(upstreamModel).searchBesideFunctions;

/**
 * Returns whether a model answers 400 to a step whose first call has no thought signature.
 */
export const needsSignatures = (upstreamModel: string): boolean =>
  geminiTraits(upstreamModel).needsSignatures;
