import type { DialectQuirks } from "../dialects/dialect.ts";
import type { ProviderQuirks } from "./provider-definition.ts";

/** Deviations that the operator can name for a server, each with the quirk that it sets. */
const quirkByName: ReadonlyMap<string, DialectQuirks> = new Map(
  Object.entries({
    max_tokens: { maxTokensField: "max_tokens" },
    max_completion_tokens: { maxTokensField: "max_completion_tokens" },
    either_max_tokens: { maxTokensField: "either" },
    no_stream_options: { noStreamOptions: true },
    system_only_first: { systemOnlyFirst: true },
    developer_role: { developerRole: true },
    custom_tools: { customTools: true },
    reasoning_object: { reasoningObject: true },
    replay_reasoning_content: { reasoningReplay: "reasoning_content" },
    replay_reasoning: { reasoningReplay: "reasoning" },
    replay_reasoning_details: { reasoningReplay: "reasoning_details" },
    replay_content: { reasoningReplay: "content" },
    cache_control: { cacheMarkers: "cache_control" },
    prompt_cache_breakpoint: { cacheMarkers: "prompt_cache_breakpoint" },
  } satisfies Record<string, DialectQuirks>),
);

/**
 * In front of a field's name: the server answers 400 to that field, so that it is left out of
 * translated requests.
 */
const refusesPrefix = "refuses_";

/**
 * Request fields that a server may refuse, by wire name; none that a request is nothing without.
 */
const refusableFields = [
  "audio",
  "frequency_penalty",
  "logit_bias",
  "logprobs",
  "metadata",
  "min_p",
  "modalities",
  "moderation",
  "n",
  "parallel_tool_calls",
  "prediction",
  "presence_penalty",
  "prompt_cache_key",
  "prompt_cache_options",
  "prompt_cache_retention",
  "reasoning_effort",
  "repetition_penalty",
  "response_format",
  "safety_identifier",
  "seed",
  "service_tier",
  "stop",
  "store",
  "temperature",
  "tool_choice",
  "top_a",
  "top_k",
  "top_logprobs",
  "top_p",
  "user",
  "verbosity",
  "web_search_options",
];

/** Every name that `deviations:` takes. */
export const deviationNames: readonly string[] = [
  ...quirkByName.keys(),
  ...refusableFields.map((field) => refusesPrefix + field),
];

/**
 * Returns the quirks that the named deviations set, over those of the provider that the server is
 * like.
 */
export function quirksOf(names: readonly string[], base: ProviderQuirks): ProviderQuirks {
  const refused = names
    .filter((name) => name.startsWith(refusesPrefix))
    .map((name) => name.slice(refusesPrefix.length));
  const unsupportedFields = [...new Set([...(base.unsupportedFields ?? []), ...refused])];
  return {
    ...base,
    ...(Object.assign({}, ...names.map((name) => quirkByName.get(name))) as DialectQuirks),
    ...(unsupportedFields.length > 0 && { unsupportedFields }),
  };
}

/**
 * Returns the earlier of the named deviations that sets the same quirk as the one at `index`;
 * undefined where none does.
 */
export function contradictedBy(names: readonly string[], index: number): string | undefined {
  const [set] = Object.keys(quirkByName.get(names[index] ?? "") ?? {});
  return set === undefined
    ? undefined
    : names.slice(0, index).find((name) => set in (quirkByName.get(name) ?? {}));
}
