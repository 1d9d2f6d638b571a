import { z } from "zod";
import type { ManagementKeyCaller } from "../../account/keys/caller.ts";
import type { ProviderKeyReference } from "../../account/byok/provider-key-editor.ts";
import { defineEndpoint } from "../../http/endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import type { RequestContext } from "../../http/request-context.ts";
import type { Provider } from "../../inference/catalog/model.ts";
import { GatewayError } from "../../platform/lib/errors.ts";
import type { Dependencies } from "../dependencies.ts";
import { accountBodyBytesMax } from "./account-fields.ts";
import { newProviderKeySchema, providerKeyChangesSchema, quotaOf } from "./byok-fields.ts";
import { providerKeyObject, providerKeyObjectSchema } from "./byok-object.ts";

const shared = {
  base: "api",
  counting: "at-door",
  tag: "BYOK",
  encodeError: encodeContractError,
} as const;
const writes = { managementScope: "write:byok", session: true } as const;

const workspaceIdOf = (context: RequestContext<unknown>): string =>
  (context.caller as ManagementKeyCaller).workspace.id;

const referenceOf = (context: RequestContext<unknown>): ProviderKeyReference => ({
  workspaceId: workspaceIdOf(context),
  id: context.param("key_id"),
});

/** The provider with this id. Throws `bad_request` that names the field. */
export function providerOf({ inference }: Dependencies, id: string): Provider {
  const provider = inference.catalog().providers.get(id.toLowerCase());
  if (provider !== undefined) return provider;
  throw new GatewayError(
    "bad_request",
    `provider_id: there is no provider ${JSON.stringify(id)}. GET /providers lists them.`,
    {
      param: "provider_id",
    },
  );
}

/** Lists the workspace's own keys, grouped by provider. */
export const listProviderKeys = defineEndpoint<Dependencies>({
  ...shared,
  method: "GET",
  path: "/auth/byok",
  access: { managementScope: "read:byok", session: true },
  summary: "List your own provider keys, grouped by provider.",
  response: z.object({
    object: z.literal("list"),
    data: z.array(
      z.object({
        provider_id: z.string(),
        name: z.string(),
        keys: z.array(providerKeyObjectSchema),
      }),
    ),
  }),
  handle(context, deps) {
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

/** Adds a key; requests for models of its provider use it from now on. */
export const createProviderKey = defineEndpoint<Dependencies, z.infer<typeof newProviderKeySchema>>(
  {
    ...shared,
    method: "POST",
    idempotent: true,
    path: "/auth/byok",
    access: writes,
    bodyBytesMax: accountBodyBytesMax,
    summary: "Add a provider key of your own.",
    description:
      "It is stored encrypted and never shown again. Requests for models of its provider use it first, and are charged 0.",
    body: newProviderKeySchema,
    response: providerKeyObjectSchema,
    async handle(context, deps) {
      const {
        provider_id: providerId,
        api_key: secret,
        source,
        label,
        enabled = true,
        quota,
      } = context.body;
      const provider = providerOf(deps, providerId);
      const key = await deps.providerKeyEditor.create({
        workspaceId: workspaceIdOf(context),
        providerId: provider.id,
        secret,
        source,
        enabled,
        label: label === undefined || label === "" ? provider.name : label,
        quota: quotaOf(quota) ?? null,
      });
      context.changed = key.id;
      return context.json(providerKeyObject(key, deps));
    },
  },
);

/** Changes some fields of a key, or the key itself in place: its id and its donation stay. */
export const changeProviderKey = defineEndpoint<
  Dependencies,
  z.infer<typeof providerKeyChangesSchema>
>({
  ...shared,
  method: "PATCH",
  path: "/auth/byok/keys/:key_id",
  access: writes,
  bodyBytesMax: accountBodyBytesMax,
  summary: "Change a provider key of your own, or rotate it in place.",
  body: providerKeyChangesSchema,
  response: providerKeyObjectSchema,
  async handle(context, deps) {
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
      (await deps.keyProber.probe(key)) === "accepted";
    return context.json(
      providerKeyObject(isAsked ? deps.providerKeyEditor.find(reference) : key, deps),
    );
  },
});

/** Deletes a key for good; a donation ends with it. */
export const deleteProviderKey = defineEndpoint<Dependencies>({
  ...shared,
  method: "DELETE",
  path: "/auth/byok/keys/:key_id",
  access: writes,
  summary: "Delete a provider key of your own.",
  response: z.object({ deleted: z.literal(true), id: z.string() }),
  async handle(context, { providerKeyEditor }) {
    const reference = referenceOf(context);
    await providerKeyEditor.remove(reference);
    return context.json({ deleted: true, id: reference.id });
  },
});
