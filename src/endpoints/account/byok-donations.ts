import { z } from "zod";
import type { ProviderKey } from "../../account/byok/provider-key.ts";
import type { ProviderKeyReference } from "../../account/byok/provider-key-editor.ts";
import type { ManagementKeyCaller } from "../../account/keys/caller.ts";
import { defineEndpoint } from "../../http/endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import type { RequestContext } from "../../http/request-context.ts";
import { GatewayError } from "../../platform/lib/errors.ts";
import type { Dependencies } from "../dependencies.ts";
import { accountBodyBytesMax } from "./account-fields.ts";
import { dailyLimitField } from "./byok-fields.ts";
import { providerKeyObject, providerKeyObjectSchema } from "./byok-object.ts";
import { limitNano } from "./llm-key-fields.ts";

const shared = {
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
    "must be true: whoever donates a key agrees that others use it, at its owner's expense",
  ),
  daily_limit: dailyLimitField,
});

const changeSchema = z.strictObject({
  paused: z.boolean().optional(),
  daily_limit: dailyLimitField,
});

const workspaceIdOf = (context: RequestContext<unknown>): string =>
  (context.caller as ManagementKeyCaller).workspace.id;

const referenceOf = (context: RequestContext<unknown>): ProviderKeyReference => ({
  workspaceId: workspaceIdOf(context),
  id: context.param("id"),
});

/** Shares a key with every workspace that has none of its own, where the platform has none either. */
export const donateProviderKey = defineEndpoint<Dependencies, z.infer<typeof donateSchema>>({
  ...shared,
  method: "POST",
  idempotent: true,
  path: "/byok/donated",
  bodyBytesMax: accountBodyBytesMax,
  summary: "Donate a provider key of your own to the shared pool.",
  description:
    "Others use it at your expense where the service has no key of its own for the provider, within daily_limit. " +
    "Their prompts pass through your account at the provider.",
  body: donateSchema,
  async handle(context, deps) {
    const { key_id: id, daily_limit: dailyLimit } = context.body;
    context.changed = id;
    const key = await deps.providerKeyEditor.donate(
      { workspaceId: workspaceIdOf(context), id },
      limitNano(dailyLimit),
    );
    return context.json(providerKeyObject(key, deps));
  },
});

/** A key that the provider refused is asked about before it serves others again. Throws `conflict` where it is still refused. */
async function assertNotRefused(key: ProviderKey, { keyProber }: Dependencies): Promise<void> {
  if (key.donation?.paused !== "credential" || (await keyProber.probe(key)) !== "refused") return;
  throw new GatewayError(
    "conflict",
    "The provider still refuses this key. PATCH /auth/byok/keys/{key_id} with a new api_key rotates it.",
    {
      param: "paused",
    },
  );
}

/** Pauses a donation, resumes it, or changes its daily limit. */
export const changeDonation = defineEndpoint<Dependencies, z.infer<typeof changeSchema>>({
  ...shared,
  method: "PATCH",
  path: "/byok/donated/:id",
  bodyBytesMax: accountBodyBytesMax,
  summary: "Pause or resume a donated key, or change its daily limit.",
  body: changeSchema,
  async handle(context, deps) {
    const { paused, daily_limit: dailyLimit } = context.body;
    const reference = referenceOf(context);
    if (paused === false) await assertNotRefused(deps.providerKeyEditor.find(reference), deps);
    const key = await deps.providerKeyEditor.changeDonation(reference, {
      ...(paused === undefined ? {} : { paused: paused ? ("owner" as const) : null }),
      ...(dailyLimit === undefined ? {} : { dailyLimitNano: limitNano(dailyLimit) }),
    });
    return context.json(providerKeyObject(key, deps));
  },
});

/** Takes a key back: it serves its owner alone. */
export const withdrawProviderKey = defineEndpoint<Dependencies>({
  ...shared,
  method: "DELETE",
  path: "/byok/donated/:id",
  summary: "Withdraw a donated key.",
  async handle(context, deps) {
    return context.json(
      providerKeyObject(await deps.providerKeyEditor.withdraw(referenceOf(context)), deps),
    );
  },
});
