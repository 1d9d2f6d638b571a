import { z } from "zod";
import { scopesHeld, type AccountCaller } from "../../account/keys/caller.ts";
import type { ManagementKey } from "../../account/keys/management-key.ts";
import { coversScope, scopes, type Scope } from "../../account/keys/scopes.ts";
import { defineEndpoint } from "../../http/endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import { GatewayError } from "../../platform/lib/errors.ts";
import type { Dependencies } from "../dependencies.ts";
import {
  accountBodyBytesMax,
  expiryMs,
  momentField,
  nameField,
  neverCached,
  plainText,
  truthIn,
} from "./account-fields.ts";
import { managementKeyObject, managementKeyObjectSchema } from "./management-key-object.ts";

const shared = {
  base: "api",
  counting: "at-door",
  tag: "Account",
  encodeError: encodeContractError,
} as const;

const createSchema = z.object({
  name: nameField,
  description: plainText(2_000).nullish(),
  scopes: z
    .array(z.enum(scopes, `must be one of ${scopes.join(", ")}`), "is required: a list of scopes")
    .min(1, "must name a scope"),
  expires_at: momentField.nullish(),
});

const revokeSchema = z.object({ revocation_reason: plainText(500).nullish() });

/** Whoever may make keys may not give away more than it holds. Throws `insufficient_scope`. */
function assertCovered(held: readonly Scope[], wanted: readonly Scope[]): void {
  const index = wanted.findIndex((scope) => !coversScope(held, scope));
  const scope = wanted[index];
  if (scope === undefined) return;
  throw new GatewayError(
    "insufficient_scope",
    `A key cannot grant what it does not hold itself: this one lacks ${scope}.`,
    {
      param: `scopes[${index}]`,
      metadata: { required_scope: scope },
    },
  );
}

const recordOf = (
  { directory, clock }: Dependencies,
  key: ManagementKey,
): z.infer<typeof managementKeyObjectSchema> =>
  managementKeyObject(key, {
    lastUsedAtMs: directory.uses.lastUsedAtMs(key.id),
    nowMs: clock.nowMs(),
  });

/** Creates a management key; its secret is shown in this answer and never again. */
export const createManagementKey = defineEndpoint<Dependencies, z.infer<typeof createSchema>>({
  ...shared,
  method: "POST",
  idempotent: true,
  path: "/management-keys",
  access: { managementScope: "write:management-keys", session: true },
  bodyBytesMax: accountBodyBytesMax,
  summary: "Create a management key.",
  description:
    "Scopes are granted as they are named, write:X implying read:X, and none that the calling key lacks.",
  body: createSchema,
  response: z.object({ key: z.string(), data: managementKeyObjectSchema }),
  async handle(context, deps) {
    const caller = context.caller as AccountCaller;
    const { workspace } = caller;
    const { name, description, scopes: wanted, expires_at: expiresAt } = context.body;
    assertCovered(scopesHeld(caller), wanted);
    const { secret, key } = await deps.managementKeyEditor.mint({
      workspaceId: workspace.id,
      name,
      description: description ?? null,
      scopes: [...new Set(wanted)],
      expiresAtMs: expiryMs(expiresAt, deps.clock.nowMs()),
      creatorUserId: caller.kind === "session" ? caller.user.id : caller.key.creatorUserId,
    });
    context.changed = key.id;
    return context.json({ key: secret, data: recordOf(deps, key) }, { headers: neverCached });
  },
});

/** Lists the management keys of the workspace, newest first, without their secrets. */
export const listManagementKeys = defineEndpoint<Dependencies>({
  ...shared,
  method: "GET",
  path: "/management-keys",
  access: { managementScope: "read:management-keys", session: true },
  summary: "List management keys.",
  query: z.object({ include_invalid: z.enum(["true", "false"]).optional() }),
  response: z.object({ object: z.literal("list"), data: z.array(managementKeyObjectSchema) }),
  async handle(context, deps) {
    const { workspace } = context.caller as AccountCaller;
    const includeInvalid = truthIn(context.query, "include_invalid");
    const keys = await deps.managementKeys.list(workspace.id, {
      includeInvalid,
      nowMs: deps.clock.nowMs(),
    });
    return context.json({ object: "list", data: keys.map((key) => recordOf(deps, key)) });
  },
});

/** Revokes a management key; its next request is refused. */
export const revokeManagementKey = defineEndpoint<Dependencies, z.infer<typeof revokeSchema>>({
  ...shared,
  method: "DELETE",
  path: "/management-keys/:id",
  access: { managementScope: "write:management-keys", session: true },
  bodyBytesMax: accountBodyBytesMax,
  summary: "Revoke a management key.",
  body: revokeSchema,
  bodyOptional: true,
  response: z.object({ deleted: z.literal(true), id: z.string() }),
  async handle(context, { managementKeyEditor }) {
    const { workspace } = context.caller as AccountCaller;
    const id = context.param("id");
    await managementKeyEditor.revoke({
      workspaceId: workspace.id,
      id,
      reason: context.body.revocation_reason ?? null,
    });
    return context.json({ deleted: true, id });
  },
});
