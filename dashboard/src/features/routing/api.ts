import type { Answers } from "../../lib/api-types.ts";
import { request, sending, sendingAsWritten } from "../../lib/api.ts";

/** Who would serve a request, and why. */
export type Explanation = Answers["POST /routing/explain"];

/** What a request says of providers. */
export interface Rules {
  order: readonly string[];
  only: readonly string[];
  ignore: readonly string[];
  sort: string;
  allowFallbacks: boolean;
  zdr: boolean;
  denyCollection: boolean;
  requireParameters: boolean;
  promptMax: string;
  completionMax: string;
}

export const noRules: Rules = {
  order: [],
  only: [],
  ignore: [],
  sort: "",
  allowFallbacks: true,
  zdr: false,
  denyCollection: false,
  requireParameters: false,
  promptMax: "",
  completionMax: "",
};

/** The `provider` object of a request; what is not set is left out. */
export function providerOf(rules: Rules): Record<string, unknown> {
  const list = (name: string, values: readonly string[]) =>
    values.length === 0 ? {} : { [name]: values };
  const price = {
    ...(rules.promptMax === "" ? {} : { prompt: rules.promptMax }),
    ...(rules.completionMax === "" ? {} : { completion: rules.completionMax }),
  };
  return {
    ...list("order", rules.order),
    ...list("only", rules.only),
    ...list("ignore", rules.ignore),
    ...(rules.sort === "" ? {} : { sort: rules.sort }),
    ...(rules.allowFallbacks ? {} : { allow_fallbacks: false }),
    ...(rules.zdr ? { zdr: true } : {}),
    ...(rules.denyCollection ? { data_collection: "deny" } : {}),
    ...(rules.requireParameters ? { require_parameters: true } : {}),
    ...(Object.keys(price).length === 0 ? {} : { max_price: price }),
  };
}

/** Asks who would serve a request. Nothing is sent to a provider. */
export const explain = (body: Record<string, unknown>): Promise<Explanation> =>
  request("/routing/explain", sendingAsWritten(body));

export const savePreset = (body: { slug: string; name: string; config: Record<string, unknown> }) =>
  request<{ slug: string }>("/presets", sending("POST /presets", body));
