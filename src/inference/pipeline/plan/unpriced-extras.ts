import { unpriced } from "../../../billing/ledger/price-levels.ts";
import { GatewayError } from "../../../platform/kernel/errors.ts";
import { searchTool } from "../../../platform/kernel/models/charged-extras.ts";
import { extrasOf, type SentExtras } from "../../dialects/shared/extras/charged-extras.ts";
import type { Candidate, LeftOut } from "../../routing/candidate.ts";
import type { RoutePlan } from "../../routing/plan-route.ts";
import type { RequestRequirements } from "../inference-call.ts";

/** A part of a request that a candidate has no price for. */
export interface Unpriced {
  /** The place in the request, such as `service_tier` or `tools[2]`. */
  field: string;
  /** The setting below `pricing:` that would price it, such as `service_tier.priority`. */
  setting: string;
  /** The deviation by which the field is left out; undefined for tools. */
  deviation: string | undefined;
}

/**
 * Leaves out candidates on credentials that are not the caller's own, where a request asks for
 * what their providers charge apart and no price is known.
 */
export function withoutUnpriced(
  plan: RoutePlan,
  requirements: RequestRequirements,
): Pick<RoutePlan, "candidates" | "leftOut"> & { unpriced: Unpriced | undefined } {
  const { candidates: planned, leftOut: before } = plan;
  if (requirements.extrasAt === undefined)
    return { candidates: planned, leftOut: before, unpriced: undefined };
  let found: Unpriced | undefined;
  const leftOut: LeftOut[] = [];
  const candidates = planned.filter((candidate) => {
    const lacking = unpricedAt(candidate, requirements.extrasAt?.(candidate.route));
    if (lacking === undefined) return true;
    found ??= lacking;
    const { model, route } = candidate;
    leftOut.push({
      provider: route.provider.id,
      model: model.id,
      rule: `no price: ${lacking.field}`,
    });
    return false;
  });
  return {
    candidates,
    leftOut: [...before, ...leftOut],
    unpriced: candidates.length === 0 ? found : undefined,
  };
}

function unpricedAt(
  { route: { price }, credential }: Candidate,
  sent: SentExtras | undefined,
): Unpriced | undefined {
  if (sent === undefined || credential?.source === "own_byok") return undefined;
  const lacking = unpriced(price ?? noPrice, extrasOf(sent));
  if (lacking === undefined) return undefined;
  if ("level" in lacking) {
    const { level } = lacking;
    const setting = `${level}.${sent.levels[level] ?? ""}`;
    return { field: level, setting, deviation: `refuses_${level}` };
  }
  const tool = sent.tools.find(({ name }) => name === lacking.tool);
  const setting = lacking.tool === searchTool ? "search" : `tools.${lacking.tool}`;
  return { field: tool?.field ?? "tools", setting, deviation: undefined };
}

const noPrice = { version: "", base: { inputTokens: 0n, outputTokens: 0n } };

/** Builds the refusal of a request whose price is not known. */
export function unpricedError(
  { field, setting, deviation }: Unpriced,
  ids: readonly string[],
): GatewayError {
  const orLeaveOut =
    deviation === undefined ? "" : `, or leaves the field out with deviations: [${deviation}]`;
  const message =
    `${field}: the provider charges for this apart, and no price is known for ${ids.join(", ")}. Leave it out, ` +
    `use a provider key of your own, or ask the operator, who sets pricing.${setting} of the model${orLeaveOut}.`;
  return new GatewayError("bad_request", message, { param: field });
}
