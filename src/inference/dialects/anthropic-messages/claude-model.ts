/** What a model of Anthropic's takes, told from its wire name; other makers' models behind this dialect take the older fields. */
export interface ClaudeAbilities {
  /** Sampling parameters are answered with 400 (Claude 4.7 and later, Anthropic's migration guide of 2026-10-21). */
  refusesSampling: boolean;
  /** Of temperature and top_p only one may be sent (Claude 4.1 and later). */
  takesOneSampler: boolean;
  /** Thinks as much as it sees fit, guided by an effort (Claude 4.6 and later). */
  thinksAdaptively: boolean;
  /** Takes strict tools and output schemas (Claude 4.1 and later). */
  takesSchemas: boolean;
}

const pattern = /claude-(?:[a-z]+-)?(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)/;

/** Abilities by wire name, such as `claude-opus-4-7`, `claude-3-5-haiku-20241022` or `anthropic.claude-sonnet-5-v1:0`. */
export function claudeAbilities(model: string): ClaudeAbilities {
  const version = claudeVersion(model);
  return {
    refusesSampling: version !== undefined && version >= 4.07,
    takesOneSampler: version !== undefined && version >= 4.01,
    thinksAdaptively: version !== undefined && version >= 4.06,
    takesSchemas: version === undefined || version >= 4.01,
  };
}

/** The version with two digits behind the point, 4.07 for 4.7; undefined for models that are no Claude. */
function claudeVersion(model: string): number | undefined {
  const match = pattern.exec(model.toLowerCase());
  return match === null ? undefined : Number(match[1]) + Number(match[2] ?? 0) / 100;
}
