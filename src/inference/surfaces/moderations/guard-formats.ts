import type { CatalogModel, UpstreamRoute } from "../../catalog/model.ts";
import type { GuardFormat } from "./guard-format.ts";
import { llamaGuard } from "./llama-guard.ts";
import { policyGuard } from "./policy-guard.ts";
import { qwenGuard } from "./qwen-guard.ts";
import { shieldGemma } from "./shield-gemma.ts";

/** Families by what their models are called; prompt guards look for attacks on a model, which is another question. */
const families: readonly (readonly [name: RegExp, format: GuardFormat])[] = [
  [/llama-?guard/i, llamaGuard],
  [/shield-?gemma/i, shieldGemma],
  [/qwen3-?guard-gen/i, qwenGuard],
  [/gpt-oss-safeguard/i, policyGuard],
];

const formatOf = (name: string): GuardFormat | undefined =>
  families.find(([pattern]) => pattern.test(name))?.[1];

/** The format of a guard model, by its id or by what a provider calls it; undefined where it is none. */
export const guardFormatOf = (
  { id }: Pick<CatalogModel, "id">,
  route?: Pick<UpstreamRoute, "upstreamModel">,
): GuardFormat | undefined => formatOf(id) ?? (route && formatOf(route.upstreamModel));

/** Whether a model can moderate: it serves the surface, or is a guard model that is asked through chat. */
export const moderates = (model: CatalogModel): boolean =>
  model.surface === "moderations" ||
  (model.surface === "chat" && model.router === undefined && guardFormatOf(model) !== undefined);
