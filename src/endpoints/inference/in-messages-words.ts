import type { CatalogSnapshot } from "../../inference/catalog/model.ts";
import { providerIdIn } from "../../inference/catalog/provider-names.ts";
import { findModel } from "../../inference/routing/resolve-models.ts";
import type { InferenceCall } from "../../inference/inference-call.ts";
import { GatewayError } from "../../platform/lib/errors.ts";
import type { Dependencies } from "../dependencies.ts";

/** Whether an id names somebody as the model's maker whom the catalog knows neither as a maker nor as a provider. */
function isOfStranger(catalog: CatalogSnapshot, id: string): boolean {
  const end = id.indexOf("/");
  const maker = id.slice(0, Math.max(end, 0)).toLowerCase();
  if (maker === "" || providerIdIn(catalog, maker) !== undefined) return false;
  for (const { owner } of catalog.models.values()) if (owner === maker) return false;
  return true;
}

/**
 * An error as the contract words it on Messages. An unknown model is `unknown_provider` there where nobody knows whom its
 * id names, else `no_upstream`; what is said of models that are there is left as it is.
 */
function worded(
  thrown: unknown,
  { catalog, body }: { catalog: CatalogSnapshot; body: Readonly<Record<string, unknown>> },
): unknown {
  if (
    !(thrown instanceof GatewayError) ||
    thrown.code !== "model_unavailable" ||
    thrown.fault === "upstream"
  )
    return thrown;
  const { model, models } = body;
  const ids = [model, ...(Array.isArray(models) ? (models as unknown[]) : [])].map(String);
  if (ids.every((id) => findModel(catalog, id) !== undefined)) return thrown;
  const code = ids.some((id) => isOfStranger(catalog, id)) ? "unknown_provider" : "no_upstream";
  return new GatewayError(code, thrown.message, {
    param: thrown.param ?? "model",
    metadata: thrown.metadata,
  });
}

/** Does the work of an endpoint of Messages; what is thrown meanwhile is worded as the contract has it there. */
export async function inMessagesWords<Result>(
  { body }: Pick<InferenceCall, "body">,
  { inference }: Pick<Dependencies, "inference">,
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    return await work();
  } catch (thrown) {
    throw worded(thrown, { catalog: inference.catalog(), body });
  }
}
