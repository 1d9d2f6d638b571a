import { z } from "zod";
import type { LlmKeyCaller, AccountCaller } from "../../account/keys/caller.ts";
import { balanceOf } from "../../account/ledger/account-book.ts";
import { defineEndpoint } from "../../http/endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import { brandHeader } from "../../platform/lib/brand.ts";
import { dayMs } from "../../platform/lib/clock.ts";
import { usdSixDecimals } from "../../platform/lib/money.ts";
import type { Dependencies } from "../dependencies.ts";

const balanceHeader = brandHeader("Credits-Balance");

/** The workspace's credits. */
export const credits = defineEndpoint<Dependencies>({
  method: "GET",
  path: "/credits",
  base: "api",
  access: { llmKey: true, managementScope: "read:credits", session: true },
  counting: "at-door",
  summary: "Show the balance of the workspace.",
  tag: "Account",
  response: z.object({
    balance: z.number(), monthly_balance: z.number(), topup_balance: z.number(), used: z.number(), today_cost: z.number(),
    currency: z.literal("usd"),
  }),
  encodeError: encodeContractError,
  async handle(context, { ledger, clock }) {
    const { workspace } = context.caller as LlmKeyCaller | AccountCaller;
    await ledger.refresh(workspace.id);
    const account = ledger.book.workspace(workspace.id);
    const today = Math.floor(clock.nowMs() / dayMs);
    const balance = usdSixDecimals(balanceOf(account));
    return context.json({
      balance,
      monthly_balance: usdSixDecimals(account.monthlyNano),
      topup_balance: usdSixDecimals(account.topupNano),
      used: usdSixDecimals(account.usedNano),
      today_cost: usdSixDecimals(account.day === today ? account.dayNano : 0n),
      currency: "usd",
    }, { headers: { [balanceHeader]: String(balance), "cache-control": "no-store" } });
  },
});
