import { z } from "zod";
import { balanceOf } from "../../account/ledger/account-book.ts";
import { planIds } from "../../account/workspaces/plan.ts";
import type { Workspace } from "../../account/workspaces/workspace.ts";
import { usdSixDecimals } from "../../platform/lib/money.ts";
import type { Dependencies } from "../dependencies.ts";

/** A workspace as operators see one. */
export const adminWorkspaceSchema = z
  .object({
    id: z.string(),
    object: z.literal("workspace"),
    name: z.string(),
    plan: z.enum(planIds),
    blocked: z.boolean(),
    owner_user_id: z.string().nullable(),
    organization_id: z.string().nullable(),
    created_at: z.string(),
    balance: z.number(),
    monthly_balance: z.number(),
    topup_balance: z.number(),
    used: z.number(),
  })
  .meta({ id: "AdminWorkspace" });

/** The record of a workspace with its balances. */
export async function adminWorkspace(
  workspace: Workspace,
  { ledger }: Pick<Dependencies, "ledger">,
): Promise<z.infer<typeof adminWorkspaceSchema>> {
  await ledger.refresh(workspace.id);
  const account = ledger.book.workspace(workspace.id);
  return {
    id: workspace.id,
    object: "workspace",
    name: workspace.name,
    plan: workspace.plan,
    blocked: workspace.blocked === true,
    owner_user_id: workspace.ownerUserId ?? null,
    organization_id: workspace.organizationId ?? null,
    created_at: new Date(workspace.createdAtMs).toISOString(),
    balance: usdSixDecimals(balanceOf(account)),
    monthly_balance: usdSixDecimals(account.monthlyNano),
    topup_balance: usdSixDecimals(account.topupNano),
    used: usdSixDecimals(account.usedNano),
  };
}
