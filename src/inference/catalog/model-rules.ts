import { providerDefinitions } from "../providers/index.ts";
import type {
  ProviderDefinition,
  RefusedParameters,
  UpstreamDialect,
} from "../providers/provider-definition.ts";
import type { UpstreamRoute } from "./model.ts";

const definitions: ReadonlyMap<string, ProviderDefinition> = new Map(
  providerDefinitions.map((definition) => [definition.id, definition]),
);

/** Returns the definition of a built-in provider; undefined for any other. */
export const definitionOf = (providerId: string): ProviderDefinition | undefined =>
  definitions.get(providerId);

/** Returns the dialect of a vendor's model where it deviates from its provider's. */
export const deviatingDialect = (
  vendorId: string,
  upstreamModel: string,
): UpstreamDialect | "none" | undefined =>
  definitions.get(vendorId)?.deviatingModels?.find(({ match }) => match.test(upstreamModel))
    ?.dialect;

/** The facts about a model that a vendor's rules ask for. */
interface RuledModel {
  upstreamModel: string;
  /** Whether the catalog says that it reasons. */
  reasons: boolean;
  /** The parameters that the catalog declares for it; absent where it declares none. */
  parameters: readonly string[] | undefined;
  /** The dialect in which it deviates from its vendor's. */
  deviation: UpstreamDialect | undefined;
}

/** Parameters of sampling, none of which a model takes that takes neither of the first two. */
const sampling = [
  "temperature",
  "top_p",
  "top_k",
  "min_p",
  "top_a",
  "frequency_penalty",
  "presence_penalty",
  "repetition_penalty",
  "logit_bias",
  "logprobs",
  "top_logprobs",
];

const nothingRefused: RefusedParameters = { always: [], whileReasoning: [] };

/**
 * Returns what a vendor's rules say about a model: in which further dialect it is served, and which
 * parameters it refuses. A new model inherits them by what the catalog says of it, or by its name.
 */
export function rulesFor(
  vendorId: string,
  { upstreamModel, reasons: declared, parameters, deviation }: RuledModel,
): Pick<UpstreamRoute, "secondDialect" | "refuses"> {
  const { secondDialect, refuses, reasoningNames } = definitions.get(vendorId) ?? {};
  const reasons = declared || reasoningNames?.test(upstreamModel) === true;
  const takesEffort = parameters === undefined || parameters.includes("reasoning_effort");
  const own = refuses?.({ name: upstreamModel, reasons, takesEffort }) ?? nothingRefused;
  const whileReasoning =
    reasons && takesNoSampling(parameters)
      ? [...new Set([...own.whileReasoning, ...sampling])]
      : own.whileReasoning;
  const isSecond =
    secondDialect !== undefined &&
    deviation === undefined &&
    !secondDialect.except.test(upstreamModel);
  return {
    ...(isSecond && {
      secondDialect: {
        dialect: secondDialect.dialect,
        takesTools: reasons && !upstreamModel.includes("chat"),
        ...(secondDialect.toolsAlone?.test(upstreamModel) === true && { toolsAlone: true }),
      },
    }),
    ...(own.always.length + whileReasoning.length > 0 && {
      refuses: { always: own.always, whileReasoning },
    }),
  };
}

/** Returns whether a list of parameters has neither of the two that every sampler has. */
const takesNoSampling = (parameters: readonly string[] | undefined): boolean =>
  parameters !== undefined && !parameters.includes("temperature") && !parameters.includes("top_p");
