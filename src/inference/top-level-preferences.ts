import { GatewayError } from "../platform/lib/errors.ts";

/** Members of a request that are aliases of members of its `provider` object (contract: PresetConfig). */
interface Aliases {
  require_params?: unknown;
  min_context?: unknown;
}

function requireParamsOf(value: unknown): string[] {
  if (value === undefined || value === null) return [];
  if (Array.isArray(value) && value.every((entry) => typeof entry === "string" && entry !== ""))
    return value as string[];
  throw new GatewayError("bad_request", "require_params must be an array of parameter names.", {
    param: "require_params",
  });
}

function minContextOf(value: unknown): number {
  if (value === undefined || value === null) return 0;
  if (typeof value === "number" && value >= 0) return value;
  throw new GatewayError("bad_request", "min_context must be a number of tokens.", {
    param: "min_context",
  });
}

/**
 * The `provider` object of a request with the top-level aliases merged in: parameter lists are unioned, the
 * higher minimum counts. What is wrong inside `provider` itself is left for its own check.
 */
export function providerWithAliases(provider: unknown, aliases: Aliases): unknown {
  const params = requireParamsOf(aliases.require_params);
  const minContext = minContextOf(aliases.min_context);
  if (params.length === 0 && minContext === 0) return provider;
  const own = (typeof provider === "object" && provider !== null ? provider : {}) as {
    require_params?: unknown;
    min_context?: unknown;
  };
  return {
    ...own,
    ...(params.length === 0 ? {} : { require_params: mergedParams(own.require_params, params) }),
    ...(minContext === 0
      ? {}
      : {
          min_context:
            typeof own.min_context === "number"
              ? Math.max(own.min_context, minContext)
              : (own.min_context ?? minContext),
        }),
  };
}

const mergedParams = (own: unknown, params: readonly string[]): unknown =>
  own === undefined || own === null
    ? params
    : Array.isArray(own)
      ? [...new Set([...own, ...params])]
      : own;
