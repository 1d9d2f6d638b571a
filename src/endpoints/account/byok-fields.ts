import { z } from "zod";
import { keySources, type Quota } from "../../account/byok/provider-key.ts";
import { plainText } from "./account-fields.ts";
import { limitField, limitNano, limitResetField } from "./llm-key-fields.ts";

const keyCharactersMin = 12;
const keyCharactersMax = 4_096;

/** A provider's key: what a header can carry (RFC 9110, 5.5), long enough that its masked form hides something. */
const keyField = z
  .string("is required: the provider's key")
  .trim()
  .min(
    keyCharactersMin,
    `is too short for a provider's key: at least ${keyCharactersMin} characters`,
  )
  .max(keyCharactersMax)
  .regex(/^[\x21-\x7e]*$/, "must be printable ASCII without spaces, as a header can carry it");

const labelField = plainText(200).trim();

const quotaField = z.strictObject({
  limit: limitField.describe("USD at list price."),
  reset: limitResetField.nullish().describe("Rolling window; null or left out never starts anew."),
});

/** Where keys are sent is the operator's to say: a caller's address would be reached from inside. */
const noAddress = z
  .undefined("cannot be set: keys are used at the provider's own address")
  .optional();

const shared = {
  label: labelField.optional(),
  enabled: z.boolean().optional(),
  quota: quotaField.nullish().describe("What may be used of the key; null means no bound."),
};

/** Body of a creation. */
export const newProviderKeySchema = z.object({
  provider_id: z
    .string("is required: the id of a provider, as GET /providers lists them")
    .trim()
    .min(1, "is required"),
  api_key: keyField,
  source: z.enum(keySources, "must be cli, dashboard or api").default("api"),
  base_url: noAddress,
  ...shared,
});

/** Body of a change; `api_key` rotates in place. */
export const providerKeyChangesSchema = z.strictObject({
  api_key: keyField.optional(),
  source: z.undefined("is set once, when the key is created").optional(),
  provider_id: z.undefined("cannot be changed; create another key and delete this one").optional(),
  kind: z.undefined("changes by donating and withdrawing alone").optional(),
  base_url: noAddress,
  ...shared,
});

/** Daily limit of a donation, in USD at list price. */
export const dailyLimitField = limitField
  .nullish()
  .describe("USD at list price that others may use within 24 hours.");

/** A quota as a body has it; undefined where it says nothing. */
export function quotaOf(
  quota: z.infer<typeof quotaField> | null | undefined,
): Quota | null | undefined {
  if (quota === null || quota === undefined) return quota;
  return { limitNano: limitNano(quota.limit) ?? 0n, reset: quota.reset ?? null };
}
