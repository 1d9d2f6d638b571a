import { z } from "zod";
import type { LlmKeyCaller, AccountCaller } from "../../account/keys/caller.ts";
import { balanceOf } from "../../account/ledger/account-book.ts";
import { defineEndpoint } from "../../http/endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import { brandHeader } from "../../platform/lib/brand.ts";
import { dayMs } from "../../platform/lib/clock.ts";
import { usdSixDecimals } from "../../platform/lib/money.ts";
import type { Dependencies } from "../dependencies.ts";

const usd = z.number();

/** The credits record; `data` is that of OpenRouter's clients. */
const creditsSchema = z
  .object({
    balance: usd.describe(
      "What can be spent: monthly_balance and topup_balance. At 0, paid inference is 402.",
    ),
    monthly_balance: usd.describe(
      "Credits of the plan, of referrals and of grants that lapse with their month; spent first.",
    ),
    topup_balance: usd.describe(
      "Credits that were bought or granted to stay; spent last, they never lapse.",
    ),
    used: usd.describe("Everything that was ever charged."),
    today_cost: usd.describe("Charged since the day began, in UTC."),
    currency: z.literal("usd"),
    data: z
      .object({
        total_credits: usd.describe(
          "Everything that was given and has not lapsed: balance and used.",
        ),
        total_usage: usd.describe("The same as used."),
      })
      .describe("The balance in OpenRouter's form."),
  })
  .meta({ id: "Credits" });

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
  response: creditsSchema,
  encodeError: encodeContractError,
  async handle(context, { ledger, clock }) {
    const { workspace } = context.caller as LlmKeyCaller | AccountCaller;
    await ledger.refresh(workspace.id);
    const account = ledger.book.workspace(workspace.id);
    const today = Math.floor(clock.nowMs() / dayMs);
    const balance = usdSixDecimals(balanceOf(account));
    const used = usdSixDecimals(account.usedNano);
    return context.json(
      {
        balance,
        monthly_balance: usdSixDecimals(account.monthlyNano),
        topup_balance: usdSixDecimals(account.topupNano),
        used,
        today_cost: usdSixDecimals(account.day === today ? account.dayNano : 0n),
        currency: "usd",
        data: {
          total_credits: usdSixDecimals(balanceOf(account) + account.usedNano),
          total_usage: used,
        },
      },
      { headers: { [balanceHeader]: String(balance), "cache-control": "no-store" } },
    );
  },
});
