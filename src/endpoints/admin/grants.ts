import { createHash } from "node:crypto";
import { z } from "zod";
import type { StandingGrant } from "../../billing/credits/grant-store.ts";
import { checkBody } from "../../http/bodies/check-body.ts";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { type AnswerOf, lazily } from "../../http/endpoint.ts";
import { badField, GatewayError } from "../../platform/kernel/errors.ts";
import { newId } from "../../platform/kernel/ids.ts";
import { nanoFromUsd, usdFromNano } from "../../platform/kernel/money.ts";
import { accountBodyBytesMax, plainText } from "../account/account-fields.ts";
import type { Dependencies } from "../dependencies.ts";
import { forOperators, operatorOf } from "./admin-fields.ts";

const listMax = 200;

/** The largest grant in USD: a larger one is most likely a typing error. */
const amountMaxUsd = 1_000_000;

const grantSchema = lazily(() =>
  z
    .object({
      id: z.string(),
      object: z.literal("credit_grant"),
      workspace_id: z.string(),
      amount: z.number(),
      bucket: z.enum(["monthly", "topup"]),
      kind: z.enum(["plan", "admin", "referral"]),
      description: z.string().nullable(),
      granted_at: z.string(),
      granted_by: z.string(),
    })
    .meta({ id: "CreditGrant" }),
);

const newGrantSchema = z.strictObject({
  workspace_id: plainText(100)
    .min(1)
    .optional()
    .describe("Id of the workspace that receives the credits."),
  user_id: plainText(100)
    .min(1)
    .optional()
    .describe(
      "Id of the user whose personal workspace receives the credits; an alternative to workspace_id.",
    ),
  amount: z
    .number("is required: USD as a number")
    .positive("must be above 0")
    .max(amountMaxUsd, `must be at most ${amountMaxUsd}`),
  bucket: z.enum(["monthly", "topup"], "must be monthly or topup").optional(),
  kind: z.enum(["admin", "referral"], "must be admin or referral").optional(),
  description: plainText(500).nullish(),
  idempotency_key: plainText(200).min(1).optional(),
});

const listSchema = z.object({ workspace_id: plainText(100).optional() });

const grantObject = (grant: StandingGrant): AnswerOf<typeof grantSchema> => ({
  id: grant.transferId,
  object: "credit_grant",
  workspace_id: grant.workspaceId,
  amount: usdFromNano(grant.amountNano),
  bucket: grant.bucket,
  kind: grant.kind,
  description: grant.description,
  granted_at: new Date(grant.grantedAtMs).toISOString(),
  granted_by: grant.grantedBy,
});

/**
 * Returns the id of the transfer. The same idempotency key yields the same id, which the ledger
 * accepts once.
 */
const transferIdOf = (key: string | undefined, nowMs: number): string =>
  key === undefined
    ? newId("txn", nowMs)
    : `txn_grant_${createHash("sha256").update(key).digest("hex").slice(0, 32)}`;

/**
 * Returns the workspace that receives the grant. Throws `bad_request` where none or two are named,
 * and `not_found`.
 */
async function receiverOf(
  { workspace_id: workspaceId, user_id: userId }: z.infer<typeof newGrantSchema>,
  { userEditor, directory }: Pick<Dependencies, "directory" | "userEditor">,
): Promise<string> {
  if ((workspaceId === undefined) === (userId === undefined)) {
    throw badField("workspace_id", "is required, or user_id in its place.");
  }
  const id = workspaceId ?? (await userEditor.find(userId ?? "")).workspaceId;
  if (id !== null && directory.workspace(id) !== undefined) return id;
  throw new GatewayError("not_found", `There is no workspace ${id ?? "of this user"}.`, {
    param: "workspace_id",
  });
}

export const grantCredits = defineEndpoint({
  ...forOperators,
  path: "/admin/grants",
  method: "POST",
  idempotent: true,
  bodyBytesMax: accountBodyBytesMax,
  summary: "Grant credits to a workspace (operators).",
  description:
    "monthly credits, the default, are spent first and expire at the end of the month (UTC). topup credits never " +
    "expire. Referral credits are monthly. A repeated request with the same idempotency_key grants nothing more; one " +
    "that differs answers 409.",
  body: newGrantSchema,
  response: grantSchema,
  async handle(
    context,
    deps: Pick<
      Dependencies,
      "grants" | "grantStore" | "operatorWorkspaceId" | "directory" | "userEditor" | "clock"
    >,
  ) {
    const { grants, grantStore, clock } = deps;
    const grantedBy = operatorOf(context, deps);
    const { amount, bucket = "monthly", kind = "admin" } = context.body;
    const { description = null, idempotency_key: key } = context.body;
    if (kind === "referral" && bucket === "topup") {
      throw badField("bucket", "credits for a referral are monthly ones.");
    }
    const workspaceId = await receiverOf(context.body, deps);
    context.changedIn = workspaceId;
    const amountNano = nanoFromUsd(amount) ?? 0n;
    if (amountNano <= 0n) throw badField("amount", "must be at least a nano-dollar.");
    const transferId = transferIdOf(key, clock.nowMs());
    const outcome = await grants.give({
      transferId,
      workspaceId,
      bucket,
      kind,
      amountNano,
      description,
      grantedBy,
    });
    if (outcome === "exists_with_different_fields") {
      throw new GatewayError("conflict", "Another grant was made with this idempotency_key.", {
        param: "idempotency_key",
      });
    }
    context.changed = `${workspaceId} ${transferId}`;
    const standing = await grantStore.find(transferId);
    if (standing === undefined)
      throw new GatewayError("internal_server_error", "The grant was made and could not be read.");
    return context.json(grantObject(standing));
  },
});

export const listGrants = defineEndpoint({
  ...forOperators,
  path: "/admin/grants",
  method: "GET",
  summary: "List granted credits (operators).",
  description: `Returns the newest ${listMax}, of one workspace if workspace_id names it.`,
  query: listSchema,
  response: () => z.object({ object: z.literal("list"), data: z.array(grantSchema()) }),
  async handle(context, deps: Pick<Dependencies, "grantStore">) {
    const { workspace_id: workspaceId } = checkBody(listSchema, Object.fromEntries(context.query));
    const grants = await deps.grantStore.list({ workspaceId, limit: listMax });
    return context.json({ object: "list", data: grants.map(grantObject) });
  },
});
