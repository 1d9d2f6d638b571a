import { GatewayError } from "../../platform/lib/errors.ts";
import { providerPreferencesSchema, type ProviderPreferences } from "./provider-preferences.ts";

/** Checks a request's `provider` object; throws `bad_request` naming the field. */
export function checkPreferences(value: unknown): ProviderPreferences {
  const result = providerPreferencesSchema.safeParse(value);
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  const param = ["provider", ...(issue?.path ?? [])].join(".");
  throw new GatewayError("bad_request", `${param}: ${issue?.message ?? "not valid"}`, { param });
}
