import { createHash } from "node:crypto";
import { z } from "zod";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import {
  pkcePattern,
  verifierCharacters,
  type AuthorizationCode,
} from "../../consent/authorization-codes.ts";
import type { Terms } from "../../consent/connections.ts";
import { readCallbackUrl } from "../../consent/oauth-clients.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import type { NewLlmKey } from "../../identity/keys/llm-key-editor.ts";
import type { LlmKey } from "../../identity/keys/llm-key-store.ts";
import { badField, GatewayError } from "../../platform/kernel/errors.ts";
import {
  accountBodyBytesMax,
  atMost,
  forSessions,
  momentField,
  neverCached,
  plainText,
  sessionOf,
} from "../account/account-fields.ts";
import { assertMakesKeys, childFields } from "../keys/child-keys.ts";
import { inferenceEndpoints } from "../keys/inference-endpoints.ts";
import { limitField, limitResetField } from "../keys/llm-key-object.ts";
import type { Dependencies } from "../dependencies.ts";
import { endUngranted, mayStillGrant, tellGrant } from "./tell-connection.ts";

const shared = {
  base: "api",
  counting: "at-door",
  tag: "Key minting",
  encodeError: encodeContractError,
} as const;

const methodField = z.enum(["S256", "plain"], "must be S256 or plain");
const { min, max } = verifierCharacters;
const verifierProblem = `must have ${min} to ${max} characters: letters, digits and -._~ (RFC 7636, section 4.1)`;

// Clients of this flow also use other services, whose further fields are ignored here.
const codeSchema = z.looseObject({
  callback_url: z.string("is required: the URL that the code is for").max(...atMost(2_000)),
  code_challenge: z
    .string("is required: the PKCE challenge (RFC 7636)")
    .regex(pkcePattern, verifierProblem),
  code_challenge_method: methodField.default("S256"),
  expires_at: momentField.nullish().describe("When the new key expires."),
  key_label: plainText(200).trim().nullish().describe("Name of the new key."),
  limit: limitField.nullish().describe("Spending limit of the new key, in USD."),
  usage_limit_type: limitResetField.nullish().describe("Window of the limit."),
});

type CodeBody = z.infer<typeof codeSchema>;

/** Returns the host of a callback, by which a person knows an app. */
const appNameOf = (url: URL): string => url.host;

/**
 * Returns a stable number for the app behind a callback, as OpenRouter's clients expect one: 31
 * bits of a hash of its origin.
 */
const appIdOf = (url: URL): number =>
  createHash("sha256").update(url.origin).digest().readUInt32BE(0) >>> 1;

/** Returns the callback URL of a body. Throws `bad_request`. */
function callbackOf(text: string): URL {
  const read = readCallbackUrl(text);
  if ("url" in read) return read.url;
  throw badField("callback_url", `${read.problem}.`);
}

const tooManyCodes = (): GatewayError =>
  new GatewayError(
    "rate_limit_exceeded",
    "Too many authorization codes of this key are under way. Exchange them, or wait ten minutes.",
    {
      retryAfterSeconds: 60,
    },
  );

/**
 * Returns the fields of the key that a code will create, within the limits of the key that asks.
 * Throws `bad_request`.
 */
function mintedFields(
  parent: LlmKey,
  body: CodeBody,
  { clock, endpointPaths }: Pick<Dependencies, "clock" | "endpointPaths">,
): NewLlmKey {
  const { key_label: label, limit, usage_limit_type: window, expires_at: expiry } = body;
  const wanted = {
    name: label || `Made for ${parent.name}`,
    limit,
    limit_reset: window,
    expires_at: expiry,
  };
  return childFields(parent, { body: wanted, nowMs: clock.nowMs(), endpointPaths });
}

/** Returns the terms that a key's code keeps, from the fields of the key that it will create. */
export const termsFor = ({
  name,
  limitNanoUsd,
  limitReset,
  expiresAtMs,
  allowedModels,
}: NewLlmKey): Terms => ({
  label: name,
  limitNanoUsd: limitNanoUsd ?? null,
  limitReset: limitReset ?? null,
  expiresAtMs: expiresAtMs ?? null,
  allowedModels: allowedModels ?? null,
  scopes: [],
});

/**
 * Creates an authorization code for a key within the limits of the calling one (PKCE, RFC 7636).
 */
export const createAuthorizationCode = defineEndpoint({
  ...shared,
  method: "POST",
  path: "/auth/keys/code",
  access: { llmKey: true, keyHeldDirectly: true },
  bodyBytesMax: accountBodyBytesMax,
  summary: "Create an authorization code for a key.",
  description:
    "The code is valid once, for ten minutes, and only with the verifier of the challenge. The new key belongs to the workspace of " +
    "the calling key (its owner's personal one, or the organisation's), stays within the calling key's limits, and ends with it.",
  body: codeSchema,
  response: () =>
    z.object({
      data: z.object({ id: z.string(), app_id: z.int(), created_at: z.string() }),
    }),
  async handle(context, deps: Pick<Dependencies, "consent" | "endpointPaths" | "clock">) {
    const { key: parent, workspace } = context.caller;
    const url = callbackOf(context.body.callback_url);
    assertMakesKeys(parent);
    const fields = mintedFields(parent, context.body, deps);
    const issued = await deps.consent.codes.issue({
      purpose: "mint",
      clientId: null,
      clientName: appNameOf(url),
      callbackUrl: url.href,
      challenge: context.body.code_challenge,
      method: context.body.code_challenge_method,
      userId: parent.creatorUserId,
      // Others may hold a key of an organisation, so it creates none in its creator's workspace.
      workspaceId: workspace.id,
      parentKeyId: parent.id,
      resource: null,
      terms: termsFor(fields),
    });
    if (issued === undefined) throw tooManyCodes();
    return context.json(
      {
        data: {
          id: issued.code,
          app_id: appIdOf(url),
          created_at: new Date(issued.createdAtMs).toISOString(),
        },
      },
      { headers: neverCached },
    );
  },
});

const exchangeSchema = z.looseObject({
  code: z
    .string("is required: the authorization code")
    .min(1, "must not be empty")
    .max(...atMost(200)),
  code_verifier: z
    .string("is required: the verifier of the code's challenge")
    .regex(pkcePattern, verifierProblem),
  code_challenge_method: methodField.nullish(),
});

const badCode = (): GatewayError =>
  new GatewayError(
    "bad_request",
    "This code cannot be exchanged: it is unknown, was used or has expired, or the verifier or its method is not the code's.",
    { param: "code", metadata: { reason: "invalid_code" } },
  );

const least = <Bound extends number | bigint>(
  one: Bound | null,
  other: Bound | null,
): Bound | null => (one === null || (other !== null && other < one) ? other : one);

/**
 * Returns the key that another key's code creates: with that key's limits at the time of the
 * request, and not beyond its present ones.
 */
export function childOf(parent: LlmKey, { terms, workspaceId }: AuthorizationCode): NewLlmKey {
  const { allowedModels } = terms;
  const models =
    parent.allowedModels === null
      ? allowedModels
      : (allowedModels?.filter((model) => parent.allowedModels?.includes(model)) ??
        parent.allowedModels);
  return {
    workspaceId,
    creatorUserId: parent.creatorUserId,
    parentKeyId: parent.id,
    name: terms.label ?? parent.name,
    limitNanoUsd: least(terms.limitNanoUsd, parent.limitNanoUsd),
    limitReset: terms.limitReset,
    allowedModels: models,
    expiresAtMs: least(terms.expiresAtMs, parent.expiresAtMs),
    rateLimitPerMinute: parent.rateLimitPerMinute,
    tokensPerMinute: parent.tokensPerMinute,
    runLimitNano: parent.runLimitNano ?? null,
    allowedEndpoints: parent.allowedEndpoints,
    allowedTools: parent.allowedTools ?? null,
    includeByokInLimit: parent.includeByokInLimit,
  };
}

/**
 * Returns the key that a person approved for an app: for inference, as the page says, and nothing
 * else.
 */
const approvedKey = ({ terms, workspaceId, userId, clientName }: AuthorizationCode): NewLlmKey => ({
  workspaceId,
  creatorUserId: userId,
  name: terms.label ?? clientName,
  limitNanoUsd: terms.limitNanoUsd,
  limitReset: terms.limitReset,
  expiresAtMs: terms.expiresAtMs,
  allowedModels: terms.allowedModels,
  allowedEndpoints: inferenceEndpoints,
});

/**
 * Returns the key that a code creates now. Throws `bad_request` where the key that requested it has
 * ended meanwhile.
 */
function newKeyOf(
  deps: Pick<Dependencies, "directory" | "clock">,
  code: AuthorizationCode,
): NewLlmKey {
  if (code.parentKeyId === null) return approvedKey(code);
  const parent = deps.directory.liveLlmKey(code.parentKeyId, deps.clock.nowMs());
  if (parent === undefined) throw badCode();
  return childOf(parent.key, code);
}

/**
 * Audits who obtained a key: a person's app, which is a connected app from now on, or a key for
 * another key.
 */
async function tellMinted(
  context: RequestContext<unknown>,
  deps: Pick<Dependencies, "people" | "security" | "consent">,
  { key, code }: { key: LlmKey; code: AuthorizationCode },
): Promise<void> {
  if (code.purpose === "exchange") {
    const userAgent = (context.request.headers.get("user-agent") ?? "").slice(0, 300);
    const from = { clientName: code.clientName, address: context.clientAddress(), userAgent };
    return tellGrant(context, deps, await deps.consent.connections.noteKey(key, from));
  }
  await deps.security.auditLog.tell(
    {
      workspaceId: key.workspaceId,
      actor: { kind: "app", id: key.id, label: code.clientName },
      address: context.clientAddress(),
      action: "POST /auth/keys",
      target: key.id,
      fields: ["code"],
    },
    { status: 200, target: key.id },
  );
}

/** Exchanges an authorization code for a key. The verifier proves who requested it. */
export const exchangeAuthorizationCode = defineEndpoint({
  ...shared,
  method: "POST",
  path: "/auth/keys",
  access: { open: true },
  anyOrigin: true,
  bodyBytesMax: accountBodyBytesMax,
  summary: "Exchange an authorization code for a key.",
  description:
    "Accepts codes of POST /auth/keys/code and of the authorization page at /auth. The secret is in this answer only and is never " +
    "shown again.",
  body: exchangeSchema,
  response: () => z.object({ key: z.string(), user_id: z.string() }),
  async handle(
    context,
    deps: Pick<
      Dependencies,
      "llmKeyMinter" | "directory" | "people" | "security" | "consent" | "clock"
    >,
  ) {
    const { code, code_verifier: verifier, code_challenge_method: method } = context.body;
    const taken = await deps.consent.codes.take({
      code,
      verifier,
      method: method ?? undefined,
      purposes: ["mint", "exchange"],
    });
    if (!taken.ok) throw badCode();
    // A key that a key requested follows that key; one that a person approved follows the person.
    const approved = taken.code.parentKeyId === null;
    if (approved && !(await mayStillGrant(deps, taken.code))) throw badCode();
    const { secret, key } = await deps.llmKeyMinter.mint(newKeyOf(deps, taken.code));
    await deps.consent.codes.noteMade(code, key.id);
    await tellMinted(context, deps, { key, code: taken.code });
    if (approved && !(await mayStillGrant(deps, taken.code))) {
      const connection = await deps.consent.connections.ofKey(key.id);
      if (connection !== undefined) await endUngranted(context, deps, connection);
      throw badCode();
    }
    return context.json({ key: secret, user_id: key.creatorUserId }, { headers: neverCached });
  },
});

/** Issues a key with which a dashboard page sends inference requests as the signed-in person. */
export const createPlaygroundKey = defineEndpoint({
  ...forSessions,
  method: "POST",
  path: "/session/playground-key",
  idempotent: true,
  summary: "Create a key for the playground.",
  description:
    "For browser pages, since sessions cannot send inference requests. Pages keep the key in memory only. It expires after 12 " +
    "hours, may spend 5 USD per day, and is metered to one key record of the person in the workspace, named Playground. The " +
    "previous key ends; a page whose key is refused with 401 requests another. GET /connections lists it, and DELETE " +
    "/connections/{id} ends it.",
  response: () =>
    z.object({
      object: z.literal("playground_key"),
      key: z.string(),
      key_id: z.string(),
      connection_id: z.string(),
      expires_at: z.string(),
    }),
  async handle(context, { consent }: Pick<Dependencies, "consent">) {
    const { user, workspace } = sessionOf(context);
    const { secret, keyId, connectionId, expiresAtMs } = await consent.playground.issue({
      userId: user.id,
      workspaceId: workspace.id,
      address: context.clientAddress(),
      userAgent: (context.request.headers.get("user-agent") ?? "").slice(0, 300),
    });
    context.changed = connectionId;
    return context.json(
      {
        object: "playground_key",
        key: secret,
        key_id: keyId,
        connection_id: connectionId,
        expires_at: new Date(expiresAtMs).toISOString(),
      },
      { headers: neverCached },
    );
  },
});
