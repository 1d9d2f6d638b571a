import type { CatalogModel, UpstreamRoute } from "../../catalog/model.ts";
import type { GuardFormat } from "./guard-format.ts";
import { llamaGuard } from "./llama-guard.ts";
import { policyGuard } from "./policy-guard.ts";
import { qwenGuard } from "./qwen-guard.ts";
import { shieldGemma } from "./shield-gemma.ts";
import type { LlmKeyCaller } from "../../../identity/keys/caller.ts";
import { GatewayError } from "../../../platform/kernel/errors.ts";
import { CredentialChoice } from "../../pipeline/credentials/credential-choice.ts";
import type { InferenceDependencies } from "../../pipeline/execution.ts";
import { findModel, isModelAllowed } from "../../routing/resolve-models.ts";
import type { ProviderFilter } from "../../routing/provider-preferences.ts";

/**
 * Families by patterns of their models' names; prompt guards are not among them, since they detect
 * attacks on a model.
 */
const families: readonly (readonly [name: RegExp, format: GuardFormat])[] = [
  [/llama-?guard/i, llamaGuard],
  [/shield-?gemma/i, shieldGemma],
  [/qwen3-?guard-gen/i, qwenGuard],
  [/gpt-oss-safeguard/i, policyGuard],
];

const formatOf = (name: string): GuardFormat | undefined =>
  families.find(([pattern]) => pattern.test(name))?.[1];

/**
 * Returns the format of a guard model, by its id or by a provider's name for it; undefined where it
 * is none.
 */
export const guardFormatOf = (
  { id }: Pick<CatalogModel, "id">,
  route?: Pick<UpstreamRoute, "upstreamModel">,
): GuardFormat | undefined => formatOf(id) ?? (route && formatOf(route.upstreamModel));

/**
 * For a guard model of an unknown family, which may be any model that follows instructions: it is
 * asked by the written policy, and may also answer as Llama Guard or Qwen3Guard was trained to,
 * since an operator's own name for one of them does not say so.
 */
export const unknownGuard: GuardFormat = {
  ...policyGuard,
  read: (reply, question) =>
    policyGuard.read(reply, question) ??
    llamaGuard.read(reply, question) ??
    qwenGuard.read(reply, question),
};

/**
 * Whether a model can moderate: it serves the surface, or is a guard model that is asked through
 * chat.
 */
export const moderates = (model: CatalogModel): boolean =>
  model.surface === "moderations" ||
  (model.surface === "chat" && model.router === undefined && guardFormatOf(model) !== undefined);

/**
 * Guard models in the order in which they are the default: those that answer in a word before those
 * that reason.
 */
const preferred: readonly string[] = [
  "meta-llama/llama-guard-4-12b",
  "meta-llama/llama-guard-3-8b",
  "qwen/qwen3guard-gen-8b",
  "qwen/qwen3guard-gen-4b",
  "qwen/qwen3guard-gen-0.6b",
  "openai/gpt-oss-safeguard-20b",
  "openai/gpt-oss-safeguard-120b",
  "openai/omni-moderation-latest",
];

/** Matches ids that clients of OpenAI's moderations send, such as `omni-moderation-latest`. */
const openaiStyle = /^(?:openai\/)?(?:omni|text)-moderation-/i;

type Catalogue = Pick<InferenceDependencies, "catalog" | "isServable">;

/**
 * Returns the id of the model that a request means: its own, or the default where it names none or
 * one of OpenAI's.
 */
export function moderationModel(
  deps: Catalogue & Pick<InferenceDependencies, "providerKeys" | "health">,
  { written, caller }: { written: string | undefined; caller: LlmKeyCaller },
): string {
  if (written !== undefined && !openaiStyle.test(written)) return written;
  // A guard model may be available only to callers with a key of their own.
  const choice = CredentialChoice.of(deps, {
    workspaceId: caller.workspace.id,
    preferences: openFilter,
  });
  const reachable: Catalogue = {
    catalog: deps.catalog,
    isServable: choice?.isServable ?? deps.isServable,
  };
  const known = written?.includes("/") === true ? findModel(deps.catalog(), written) : undefined;
  return known !== undefined && isServed(reachable, known)
    ? known.id
    : defaultGuard(reachable, caller);
}

const openFilter: ProviderFilter = { allowFallbacks: true, partition: "model" };

const isServed = ({ isServable }: Catalogue, model: CatalogModel): boolean =>
  model.routes.some((route) => isServable(route, model));

/**
 * Returns the first guard that can be served and that the key may use; the first that can be served
 * where it may use none.
 */
function defaultGuard(deps: Catalogue, { key }: LlmKeyCaller): string {
  const { models } = deps.catalog();
  const inOrder = [
    ...preferred.flatMap((id) => models.get(id) ?? []),
    ...models.values().filter(moderates),
  ];
  const served = inOrder.filter((model) => isServed(deps, model));
  const chosen = served.find((model) => isModelAllowed(key.allowedModels, model)) ?? served[0];
  if (chosen !== undefined) return chosen.id;
  throw new GatewayError(
    "model_unavailable",
    "No guard model can be served: no provider of one has a credential.",
    { param: "model" },
  );
}
