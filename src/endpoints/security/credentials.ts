import { z } from "zod";
import { isOperatorsKey } from "../../identity/keys/caller.ts";
import type { LlmKey } from "../../identity/keys/llm-key-store.ts";
import { managementKeyStatus, type ManagementKey } from "../../identity/keys/management-keys.ts";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { type AnswerOf, lazily } from "../../http/endpoint.ts";
import type { EndpointPaths } from "../../http/endpoint-paths.ts";
import { dayMs, isoOrNull } from "../../platform/kernel/clock.ts";
import type { Dependencies } from "../dependencies.ts";
import { accountBodyBytesMax, workspaceOf } from "../account/account-fields.ts";
import { shownEndpoints } from "../keys/llm-key-object.ts";
import {
  privacyChanges,
  privacyChangesSchema,
  privacyObject,
  privacySchema,
  forSecurity,
} from "./privacy.ts";

/** Days without use after which a key should be reviewed. */
const idleDays = 90;

const findings = ["no_expiry", "unused", "no_spending_limit"] as const;

const credentialSchema = lazily(() =>
  z
    .object({
      id: z.string(),
      object: z.literal("credential"),
      kind: z.enum(["llm", "management"]),
      name: z.string(),
      label: z.string(),
      hash: z.string().nullable(),
      status: z.enum(["active", "disabled", "expired"]),
      created_at: z.string(),
      expires_at: z.string().nullable(),
      last_used_at: z.string().nullable(),
      scopes: z.array(z.string()).nullable(),
      operator: z.boolean().describe("Whether the key has an operator's rights."),
      allowed_models: z.array(z.string()).nullable(),
      allowed_endpoints: z.array(z.string()).nullable(),
      privacy: privacySchema().nullable(),
      findings: z.array(z.enum(findings)),
    })
    .meta({ id: "Credential" }),
);

type CredentialObject = AnswerOf<typeof credentialSchema>;

interface Facts {
  lastUsedAtMs: number | null;
  nowMs: number;
}

const isIdle = (createdAtMs: number, { lastUsedAtMs, nowMs }: Facts): boolean =>
  nowMs - (lastUsedAtMs ?? createdAtMs) > idleDays * dayMs;

const foundOf = (found: Record<(typeof findings)[number], boolean>): CredentialObject["findings"] =>
  findings.filter((name) => found[name]);

interface LlmFacts extends Facts {
  privacy: CredentialObject["privacy"];
  endpointPaths: EndpointPaths;
}

function llmCredential(key: LlmKey, facts: LlmFacts): CredentialObject {
  const expired = key.expiresAtMs !== null && key.expiresAtMs <= facts.nowMs;
  return {
    id: key.id,
    object: "credential",
    kind: "llm",
    name: key.name,
    label: key.label,
    hash: key.hash,
    status: expired ? "expired" : key.disabled ? "disabled" : "active",
    created_at: new Date(key.createdAtMs).toISOString(),
    expires_at: isoOrNull(key.expiresAtMs),
    last_used_at: isoOrNull(facts.lastUsedAtMs),
    scopes: null,
    operator: key.operatorUserId !== undefined,
    allowed_models: key.allowedModels && [...key.allowedModels],
    allowed_endpoints: shownEndpoints(key.allowedEndpoints, facts.endpointPaths),
    privacy: facts.privacy,
    findings: foundOf({
      no_expiry: key.expiresAtMs === null,
      unused: isIdle(key.createdAtMs, facts),
      no_spending_limit: key.limitNanoUsd === null,
    }),
  };
}

function managementCredential(
  key: ManagementKey,
  facts: Facts & { operatorWorkspaceId: string },
): CredentialObject {
  return {
    id: key.id,
    object: "credential",
    kind: "management",
    name: key.name,
    label: key.label,
    hash: null,
    status: managementKeyStatus(key, facts.nowMs) === "expired" ? "expired" : "active",
    created_at: new Date(key.createdAtMs).toISOString(),
    expires_at: isoOrNull(key.expiresAtMs),
    last_used_at: isoOrNull(facts.lastUsedAtMs),
    scopes: [...key.scopes],
    operator: isOperatorsKey(key, facts.operatorWorkspaceId),
    allowed_models: null,
    allowed_endpoints: null,
    privacy: null,
    findings: foundOf({
      no_expiry: key.expiresAtMs === null,
      unused: isIdle(key.createdAtMs, facts),
      no_spending_limit: false,
    }),
  };
}

/**
 * Lists every credential of the workspace with what matters to its security, never with its secret.
 */
export const listCredentials = defineEndpoint({
  ...forSecurity,
  method: "GET",
  path: "/security/keys",
  access: { managementScope: "read:security", session: true },
  summary: "List every credential of the workspace.",
  description:
    "Returns the LLM keys and management keys that were neither deleted nor revoked, newest first, with their permissions. " +
    `findings names what to review: no_expiry, unused (for ${idleDays} days), no_spending_limit.`,
  response: () => z.object({ object: z.literal("list"), data: z.array(credentialSchema()) }),
  async handle(
    context,
    {
      llmKeys,
      managementKeys,
      directory,
      security,
      clock,
      endpointPaths,
      operatorWorkspaceId,
    }: Pick<
      Dependencies,
      | "operatorWorkspaceId"
      | "llmKeys"
      | "managementKeys"
      | "directory"
      | "security"
      | "endpointPaths"
      | "clock"
    >,
  ) {
    const { id } = workspaceOf(context);
    const nowMs = clock.nowMs();
    const [llm, management] = await Promise.all([
      llmKeys.list(id, { includeDisabled: true }),
      managementKeys.list(id, { includeInvalid: true, nowMs }),
    ]);
    const factsOf = (keyId: string): Facts => ({
      nowMs,
      lastUsedAtMs: directory.uses.lastUsedAtMs(keyId),
    });
    const data = [
      ...llm.map((key) =>
        llmCredential(key, {
          ...factsOf(key.id),
          privacy: privacyObject(security.privacy.of(key.id)),
          endpointPaths,
        }),
      ),
      ...management
        .filter(({ revokedAtMs }) => revokedAtMs === null)
        .map((key) => managementCredential(key, { ...factsOf(key.id), operatorWorkspaceId })),
    ];
    return context.json({
      object: "list",
      data: data.sort((one, other) => (one.created_at < other.created_at ? 1 : -1)),
    });
  },
});

/** Changes what an LLM key requires of providers beyond its workspace's requirements. */
export const changeKeyPrivacy = defineEndpoint({
  ...forSecurity,
  method: "PATCH",
  path: "/security/keys/:hash",
  access: { managementScope: "write:security", session: true },
  bodyBytesMax: accountBodyBytesMax,
  summary: "Change the privacy settings of an LLM key.",
  description: "Takes the settings of PATCH /security/privacy, for this key and its child keys.",
  body: privacyChangesSchema,
  response: () => z.object({ id: z.string(), privacy: privacySchema() }),
  async handle(context, deps: Pick<Dependencies, "inference" | "llmKeyEditor" | "security">) {
    const workspaceId = workspaceOf(context).id;
    const { id } = deps.llmKeyEditor.find({ workspaceId, hash: context.param("hash") });
    const privacy = await deps.security.privacyEditor.change(
      { workspaceId, ownerId: id },
      privacyChanges(deps, context.body),
    );
    context.changed = id;
    return context.json({ id, privacy: privacyObject(privacy) });
  },
});
