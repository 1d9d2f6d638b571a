import { z } from "zod";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import type { ProviderKeyReference } from "../../byok/provider-key-editor.ts";
import { type AnswerOf, lazily } from "../../http/endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import type { AccountCaller } from "../../identity/keys/caller.ts";
import type { Provider } from "../../inference/catalog/model.ts";
import { isoOrNull } from "../../platform/kernel/clock.ts";
import { badField, GatewayError } from "../../platform/kernel/errors.ts";
import { usdFromNano } from "../../platform/kernel/money.ts";
import type { Dependencies } from "../dependencies.ts";
import { accountBodyBytesMax, plainText } from "./account-fields.ts";
import { limitField, limitNano, limitResetField } from "../keys/llm-key-object.ts";
import { keySources, type Quota, type ProviderKey } from "../../byok/provider-key.ts";

const keyCharactersMin = 8;
const keyCharactersMax = 4_096;

/**
 * A provider key: characters that a header can carry (RFC 9110, 5.5), and long enough that its
 * masked form hides something.
 */
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
  limit: limitField.describe("Limit in USD at list price."),
  reset: limitResetField
    .nullish()
    .describe("Rolling window of the limit; null or omitted means that it never resets."),
});

/**
 * Refuses a base URL: only the operator decides where keys are sent, since a caller's address would
 * be reached from inside the network.
 */
const noAddress = z
  .undefined("cannot be set: keys are used at the provider's own address")
  .optional();

const keyFields = {
  label: labelField.optional(),
  enabled: z.boolean().optional(),
  quota: quotaField.nullish().describe("Quota of the key; null means no limit."),
};

/** The body of a new key. Null means the default, in every field that has one except `source`. */
export const newProviderKeySchema = z.object({
  provider_id: z
    .string("is required: the id of a provider, as GET /providers lists them")
    .trim()
    .min(1, "is required"),
  api_key: keyField,
  source: z.enum(keySources, "source must be cli, dashboard or api").default("api"),
  base_url: noAddress,
  ...keyFields,
  label: labelField.nullish().describe("Default: the name of the provider."),
  enabled: z.boolean().nullish().describe("Default: true."),
});

/** The body of a change; `api_key` rotates the key in place. */
const providerKeyChangesSchema = z.strictObject({
  api_key: keyField.optional(),
  source: z.undefined("is set once, when the key is created").optional(),
  provider_id: z.undefined("cannot be changed; create another key and delete this one").optional(),
  kind: z.undefined("changes by donating and withdrawing alone").optional(),
  base_url: noAddress,
  ...keyFields,
});

/** The daily limit of a donation, in USD at list price. */
const dailyLimitField = limitField
  .nullish()
  .describe("USD at list price that other workspaces may use within 24 hours.");

/** Returns the quota of a body; undefined where it names none. */
function quotaOf(quota: z.infer<typeof quotaField> | null | undefined): Quota | null | undefined {
  if (quota === null || quota === undefined) return quota;
  return { limitNano: limitNano(quota.limit) ?? 0n, reset: quota.reset ?? null };
}

/**
 * The contract's record of a provider key, including its optional fields. The key itself is never
 * shown.
 */
const providerKeyObjectSchema = lazily(() =>
  z
    .object({
      id: z.string(),
      provider_id: z.string(),
      label: z.string(),
      key_preview: z.string(),
      enabled: z.boolean(),
      route_coverage: z.literal("all"),
      kind: z.enum(["byok", "donated"]),
      source: z.enum(keySources),
      status: z.enum(["active", "disabled", "refused", "exhausted", "paused"]),
      status_reason: z
        .string()
        .nullable()
        .describe("The provider's words when it last refused the key; null where there are none."),
      quota: z
        .object({
          limit: z.number(),
          used: z.number(),
          reset: z.enum(["daily", "weekly", "monthly"]).nullable(),
        })
        .nullable(),
      donation: z
        .object({
          donated_at: z.string(),
          daily_limit: z.number().nullable(),
          used_today: z.number(),
          paused: z.boolean(),
          pause_reason: z.enum(["credential", "owner"]).nullable(),
        })
        .nullable(),
      created_at: z.string(),
      updated_at: z.string().nullable(),
      last_used_at: z.string().nullable(),
    })
    .meta({ id: "ProviderKey" }),
);

/** Returns the public record of a provider key. */
function providerKeyObject(
  key: ProviderKey,
  {
    providerKeys,
    providerKeyUsage: usage,
    directory,
  }: Pick<Dependencies, "directory" | "providerKeys" | "providerKeyUsage">,
): AnswerOf<typeof providerKeyObjectSchema> {
  const { quota, donation } = key;
  return {
    id: key.id,
    provider_id: key.providerId,
    label: key.label,
    key_preview: key.preview,
    enabled: key.enabled,
    route_coverage: "all",
    kind: donation === null ? "byok" : "donated",
    source: key.source,
    status: providerKeys.statusOf(key),
    status_reason: providerKeys.refusalReasonOf(key),
    quota: quota && {
      limit: usdFromNano(quota.limitNano),
      used: usdFromNano(usage.usedOf(key)),
      reset: quota.reset,
    },
    donation: donation && {
      donated_at: new Date(donation.donatedAtMs).toISOString(),
      daily_limit: donation.dailyLimitNano === null ? null : usdFromNano(donation.dailyLimitNano),
      used_today: usdFromNano(usage.poolUsedOf(key)),
      paused: donation.paused !== null,
      pause_reason: donation.paused,
    },
    created_at: new Date(key.createdAtMs).toISOString(),
    updated_at: isoOrNull(key.updatedAtMs),
    last_used_at: isoOrNull(directory.uses.lastUsedAtMs(key.id)),
  };
}

const shared = {
  base: "api",
  counting: "at-door",
  tag: "BYOK",
  encodeError: encodeContractError,
} as const;
const writes = { managementScope: "write:byok", session: true } as const;

const workspaceIdOf = (context: RequestContext<unknown, AccountCaller>): string =>
  context.caller.workspace.id;

const referenceOf = (context: RequestContext<unknown, AccountCaller>): ProviderKeyReference => ({
  workspaceId: workspaceIdOf(context),
  id: context.param("key_id"),
});

/** Returns the provider with this id. Throws `bad_request` that names the field. */
export function providerOf({ inference }: Pick<Dependencies, "inference">, id: string): Provider {
  const provider = inference.catalog().providers.get(id.toLowerCase());
  if (provider !== undefined) return provider;
  throw badField(
    "provider_id",
    `there is no provider ${JSON.stringify(id)}. GET /providers lists them.`,
  );
}

export const listProviderKeys = defineEndpoint({
  ...shared,
  method: "GET",
  path: "/auth/byok",
  access: { managementScope: "read:byok", session: true },
  summary: "List provider keys, grouped by provider.",
  response: () =>
    z.object({
      object: z.literal("list"),
      data: z.array(
        z.object({
          provider_id: z.string(),
          name: z.string(),
          keys: z.array(providerKeyObjectSchema()),
        }),
      ),
    }),
  handle(
    context,
    deps: Pick<
      Dependencies,
      "inference" | "directory" | "providerKeys" | "providerKeyDirectory" | "providerKeyUsage"
    >,
  ) {
    const { providers } = deps.inference.catalog();
    const groups = [...(deps.providerKeyDirectory.keysOf(workspaceIdOf(context)) ?? [])].sort(
      ([left], [right]) => (left < right ? -1 : 1),
    );
    return context.json({
      object: "list",
      data: groups.map(([providerId, keys]) => ({
        provider_id: providerId,
        name: providers.get(providerId)?.name ?? providerId,
        keys: keys.map((key) => providerKeyObject(key, deps)),
      })),
    });
  },
});

/** Adds a key, which requests for models of its provider use from now on. */
export const createProviderKey = defineEndpoint({
  ...shared,
  method: "POST",
  idempotent: true,
  path: "/auth/byok",
  access: writes,
  bodyBytesMax: accountBodyBytesMax,
  summary: "Add a provider key.",
  description:
    "The key is stored encrypted and never shown again. Requests for the provider's models use it first and are not " +
    "charged here.",
  body: newProviderKeySchema,
  response: providerKeyObjectSchema,
  async handle(
    context,
    deps: Pick<
      Dependencies,
      "inference" | "directory" | "providerKeys" | "providerKeyEditor" | "providerKeyUsage"
    >,
  ) {
    const {
      provider_id: providerId,
      api_key: secret,
      source,
      label,
      enabled,
      quota,
    } = context.body;
    const provider = providerOf(deps, providerId);
    const key = await deps.providerKeyEditor.create({
      workspaceId: workspaceIdOf(context),
      providerId: provider.id,
      secret,
      source,
      enabled: enabled ?? true,
      label: label || provider.name,
      quota: quotaOf(quota) ?? null,
    });
    context.changed = key.id;
    return context.json(providerKeyObject(key, deps));
  },
});

/** Changes some fields of a key, or replaces the key itself; its id and its donation stay. */
export const changeProviderKey = defineEndpoint({
  ...shared,
  method: "PATCH",
  path: "/auth/byok/keys/:key_id",
  access: writes,
  bodyBytesMax: accountBodyBytesMax,
  summary: "Change or rotate a provider key.",
  body: providerKeyChangesSchema,
  response: providerKeyObjectSchema,
  async handle(
    context,
    deps: Pick<
      Dependencies,
      "directory" | "providerKeys" | "providerKeyEditor" | "providerKeyUsage" | "keyProber"
    >,
  ) {
    const { api_key: secret, label, enabled, quota } = context.body;
    const wantedQuota = quotaOf(quota);
    const reference = referenceOf(context);
    const key = await deps.providerKeyEditor.change(reference, {
      ...(secret === undefined ? {} : { secret }),
      ...(label === undefined || label === "" ? {} : { label }),
      ...(enabled === undefined ? {} : { enabled }),
      ...(wantedQuota === undefined ? {} : { quota: wantedQuota }),
    });
    // A donated key that was refused serves others again as soon as the new one is accepted.
    const isAsked =
      secret !== undefined &&
      key.donation?.paused === "credential" &&
      (await deps.keyProber.probe(key)).outcome === "accepted";
    return context.json(
      providerKeyObject(isAsked ? deps.providerKeyEditor.find(reference) : key, deps),
    );
  },
});

/** Deletes a key permanently; a donation ends with it. */
export const deleteProviderKey = defineEndpoint({
  ...shared,
  method: "DELETE",
  path: "/auth/byok/keys/:key_id",
  access: writes,
  summary: "Delete a provider key.",
  response: () => z.object({ deleted: z.literal(true), id: z.string() }),
  async handle(context, { providerKeyEditor }: Pick<Dependencies, "providerKeyEditor">) {
    const reference = referenceOf(context);
    await providerKeyEditor.remove(reference);
    return context.json({ deleted: true, id: reference.id });
  },
});

const donating = {
  base: "api",
  counting: "at-door",
  tag: "BYOK",
  encodeError: encodeContractError,
  access: { managementScope: "write:byok", session: true },
  response: providerKeyObjectSchema,
} as const;

const donateSchema = z.object({
  key_id: z.string("is required: the id of a key of GET /auth/byok").min(1, "is required"),
  consent: z.literal(
    true,
    "must be true: by donating a key you agree that others use it, at its owner's expense",
  ),
  daily_limit: dailyLimitField,
});

const changeSchema = z.strictObject({
  paused: z.boolean().optional(),
  daily_limit: dailyLimitField,
});

const donationOf = (context: RequestContext<unknown, AccountCaller>): ProviderKeyReference => ({
  workspaceId: workspaceIdOf(context),
  id: context.param("id"),
});

/**
 * Shares a key with every workspace that has none of its own, for providers where the platform has
 * none either.
 */
export const donateProviderKey = defineEndpoint({
  ...donating,
  method: "POST",
  idempotent: true,
  path: "/byok/donated",
  bodyBytesMax: accountBodyBytesMax,
  summary: "Donate a provider key.",
  description:
    "Other workspaces use the key at your expense, within daily_limit, where the service has no key of its own for the " +
    "provider. Their prompts pass through your account at the provider.",
  body: donateSchema,
  async handle(
    context,
    deps: Pick<
      Dependencies,
      "directory" | "providerKeys" | "providerKeyEditor" | "providerKeyUsage"
    >,
  ) {
    const { key_id: id, daily_limit: dailyLimit } = context.body;
    context.changed = id;
    const key = await deps.providerKeyEditor.donate(
      { workspaceId: workspaceIdOf(context), id },
      limitNano(dailyLimit),
    );
    return context.json(providerKeyObject(key, deps));
  },
});

/**
 * Probes a key that the provider refused before it serves others again. Throws `conflict` where it
 * is still refused.
 */
async function assertNotRefused(
  key: ProviderKey,
  { keyProber }: Pick<Dependencies, "keyProber">,
): Promise<void> {
  if (key.donation?.paused !== "credential") return;
  if ((await keyProber.probe(key)).outcome !== "refused") return;
  throw new GatewayError(
    "conflict",
    "The provider still refuses this key. PATCH /auth/byok/keys/{key_id} with a new api_key rotates it.",
    {
      param: "paused",
    },
  );
}

export const changeDonation = defineEndpoint({
  ...donating,
  method: "PATCH",
  path: "/byok/donated/:id",
  bodyBytesMax: accountBodyBytesMax,
  summary: "Pause or resume a donated key, or change its daily limit.",
  body: changeSchema,
  async handle(
    context,
    deps: Pick<
      Dependencies,
      "directory" | "providerKeys" | "providerKeyEditor" | "providerKeyUsage" | "keyProber"
    >,
  ) {
    const { paused, daily_limit: dailyLimit } = context.body;
    const reference = donationOf(context);
    if (paused === false) await assertNotRefused(deps.providerKeyEditor.find(reference), deps);
    const key = await deps.providerKeyEditor.changeDonation(reference, {
      ...(paused === undefined ? {} : { paused: paused ? ("owner" as const) : null }),
      ...(dailyLimit === undefined ? {} : { dailyLimitNano: limitNano(dailyLimit) }),
    });
    return context.json(providerKeyObject(key, deps));
  },
});

/** Ends a donation, so that the key serves its owner alone. */
export const withdrawProviderKey = defineEndpoint({
  ...donating,
  method: "DELETE",
  path: "/byok/donated/:id",
  summary: "Withdraw a donated key.",
  async handle(
    context,
    deps: Pick<
      Dependencies,
      "directory" | "providerKeys" | "providerKeyEditor" | "providerKeyUsage"
    >,
  ) {
    return context.json(
      providerKeyObject(await deps.providerKeyEditor.withdraw(donationOf(context)), deps),
    );
  },
});
