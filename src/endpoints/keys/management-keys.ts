import { z } from "zod";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { type AnswerOf, lazily } from "../../http/endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import {
  isOperatorsKey,
  requireOperator,
  scopesHeld,
  type AccountCaller,
} from "../../identity/keys/caller.ts";
import { managementKeyStatus, type ManagementKey } from "../../identity/keys/management-keys.ts";
import { scopesOf } from "../../identity/people/roles.ts";
import { coversScope, scopes, type Scope } from "../../identity/keys/scopes.ts";
import { isoOrNull } from "../../platform/kernel/clock.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import type { Dependencies } from "../dependencies.ts";
import {
  accountBodyBytesMax,
  expiryMs,
  momentField,
  nameField,
  neverCached,
  plainText,
  truthIn,
} from "../account/account-fields.ts";

/** The public record of a management key. */
const managementKeyObjectSchema = lazily(() =>
  z
    .object({
      id: z.string(),
      object: z.literal("management_key"),
      name: z.string(),
      description: z.string().nullable(),
      scopes: z.array(z.string()),
      operator: z.boolean().describe("Whether the key has an operator's rights."),
      label: z.string(),
      created_at: z.string(),
      expires_at: z.string().nullable(),
      last_used_at: z.string().nullable(),
      status: z.enum(["active", "expired", "revoked"]),
      revoked_at: z.string().nullable(),
      revocation_reason: z.string().nullable(),
    })
    .meta({ id: "ManagementKey" }),
);

/** Returns the record of a key, without its secret and its hash. */
function managementKeyObject(
  key: ManagementKey,
  {
    lastUsedAtMs,
    nowMs,
    operator,
  }: { lastUsedAtMs: number | null; nowMs: number; operator: boolean },
): AnswerOf<typeof managementKeyObjectSchema> {
  return {
    id: key.id,
    object: "management_key",
    name: key.name,
    description: key.description,
    scopes: [...key.scopes],
    operator,
    label: key.label,
    created_at: new Date(key.createdAtMs).toISOString(),
    expires_at: isoOrNull(key.expiresAtMs),
    last_used_at: isoOrNull(lastUsedAtMs),
    status: managementKeyStatus(key, nowMs),
    revoked_at: isoOrNull(key.revokedAtMs),
    revocation_reason: key.revocationReason,
  };
}

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

/** Refuses a new key with more scopes than its creator holds. Throws `insufficient_scope`. */
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

/**
 * Revokes a new key whose creator lost the scopes while it was created. Throws
 * `insufficient_scope`.
 */
async function assertStillHeld(
  {
    directory,
    people,
    managementKeyEditor,
  }: Pick<Dependencies, "managementKeyEditor" | "directory" | "people">,
  caller: AccountCaller,
  { id, workspaceId, scopes: wanted }: ManagementKey,
): Promise<void> {
  const { organizationId } = caller.workspace;
  let held: readonly Scope[] | undefined = scopesHeld(caller);
  if (caller.kind === "management-key") held = directory.managementKeyById(caller.key.id)?.scopes;
  else if (caller.kind === "session" && organizationId !== undefined) {
    const organizations = await people.organizations.of(caller.user.id);
    const role = organizations.find((organization) => organization.id === organizationId)?.role;
    held = role && scopesOf(role);
  }
  try {
    assertCovered(held ?? [], wanted);
  } catch (error) {
    const reason = "The person or key that made it lost its scopes meanwhile.";
    await managementKeyEditor.revoke({ workspaceId, id, reason });
    throw error;
  }
}

const recordOf = (
  {
    directory,
    clock,
    operatorWorkspaceId,
  }: Pick<Dependencies, "operatorWorkspaceId" | "directory" | "clock">,
  key: ManagementKey,
): AnswerOf<typeof managementKeyObjectSchema> =>
  managementKeyObject(key, {
    lastUsedAtMs: directory.uses.lastUsedAtMs(key.id),
    nowMs: clock.nowMs(),
    operator: isOperatorsKey(key, operatorWorkspaceId),
  });

/** Creates a management key. Its secret is shown only in this answer. */
export const createManagementKey = defineEndpoint({
  ...shared,
  method: "POST",
  idempotent: true,
  path: "/management-keys",
  access: { managementScope: "write:management-keys", session: true },
  bodyBytesMax: accountBodyBytesMax,
  summary: "Create a management key.",
  description:
    "Scopes are granted as they are named; write:X implies read:X. A key cannot receive scopes that the calling key lacks. With " +
    "write:management-keys, a key of the first workspace has an operator's rights, so only operators create it.",
  body: createSchema,
  response: () => z.object({ key: z.string(), data: managementKeyObjectSchema() }),
  async handle(
    context,
    deps: Pick<
      Dependencies,
      "operatorWorkspaceId" | "managementKeyEditor" | "directory" | "people" | "clock"
    >,
  ) {
    const caller = context.caller;
    const { workspace } = caller;
    const { name, description, scopes: wanted, expires_at: expiresAt } = context.body;
    assertCovered(scopesHeld(caller), wanted);
    if (isOperatorsKey({ workspaceId: workspace.id, scopes: wanted }, deps.operatorWorkspaceId))
      requireOperator(caller, deps.operatorWorkspaceId);
    const { secret, key } = await deps.managementKeyEditor.mint({
      workspaceId: workspace.id,
      name,
      description: description ?? null,
      scopes: [...new Set(wanted)],
      expiresAtMs: expiryMs(expiresAt, deps.clock.nowMs()),
      creatorUserId: caller.kind === "session" ? caller.user.id : caller.key.creatorUserId,
    });
    context.changed = key.id;
    await assertStillHeld(deps, caller, key);
    return context.json({ key: secret, data: recordOf(deps, key) }, { headers: neverCached });
  },
});

/** Lists the management keys of the workspace, newest first, without their secrets. */
export const listManagementKeys = defineEndpoint({
  ...shared,
  method: "GET",
  path: "/management-keys",
  access: { managementScope: "read:management-keys", session: true },
  summary: "List management keys.",
  query: z.object({ include_invalid: z.enum(["true", "false"]).optional() }),
  response: () =>
    z.object({ object: z.literal("list"), data: z.array(managementKeyObjectSchema()) }),
  async handle(
    context,
    deps: Pick<Dependencies, "operatorWorkspaceId" | "managementKeys" | "directory" | "clock">,
  ) {
    const { workspace } = context.caller;
    const includeInvalid = truthIn(context.query, "include_invalid");
    const keys = await deps.managementKeys.list(workspace.id, {
      includeInvalid,
      nowMs: deps.clock.nowMs(),
    });
    return context.json({ object: "list", data: keys.map((key) => recordOf(deps, key)) });
  },
});

/** Revokes a management key; its next request is refused. */
export const revokeManagementKey = defineEndpoint({
  ...shared,
  method: "DELETE",
  path: "/management-keys/:id",
  access: { managementScope: "write:management-keys", session: true },
  bodyBytesMax: accountBodyBytesMax,
  summary: "Revoke a management key.",
  body: revokeSchema,
  bodyOptional: true,
  response: () => z.object({ deleted: z.literal(true), id: z.string() }),
  async handle(context, { managementKeyEditor }: Pick<Dependencies, "managementKeyEditor">) {
    const { workspace } = context.caller;
    const id = context.param("id");
    await managementKeyEditor.revoke({
      workspaceId: workspace.id,
      id,
      reason: context.body.revocation_reason ?? null,
    });
    return context.json({ deleted: true, id });
  },
});
