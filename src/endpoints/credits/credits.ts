import { z } from "zod";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { balanceOf, type WorkspaceAccount } from "../../billing/ledger/book/account-book.ts";
import type { StatementCursor, StatementEntry } from "../../billing/credits/statements.ts";
import { type AnswerOf, lazily } from "../../http/endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import { brandHeader } from "../../platform/kernel/brand.ts";
import { dayMs } from "../../platform/kernel/clock.ts";
import { badField } from "../../platform/kernel/errors.ts";
import { sumSixDecimals, usdFromNano, usdSixDecimals } from "../../platform/kernel/money.ts";
import type { Dependencies } from "../dependencies.ts";
import { neverCached, workspaceOf } from "../account/account-fields.ts";
import { cutPage, entryLimit, entryParameters, listSchema } from "../account/list-pages.ts";

const usd = z.number();

/** The credits record; `data` is in the form of OpenRouter's clients. */
const creditsSchema = lazily(() =>
  z
    .object({
      balance: usd.describe(
        "Spendable amount: monthly_balance and topup_balance. At 0, paid inference answers 402.",
      ),
      monthly_balance: usd.describe(
        "Credits of the plan, of referrals and of monthly grants. They expire with their month and are spent first.",
      ),
      topup_balance: usd.describe(
        "Credits that were bought, or granted without expiry. They are spent last.",
      ),
      used: usd.describe("USD charged since the workspace exists."),
      today_cost: usd.describe("USD charged since the day began (UTC)."),
      currency: z.literal("usd"),
      data: z
        .object({
          total_credits: usd.describe(
            "All credits that were given and have not expired: balance and used.",
          ),
          total_usage: usd.describe("Copy of used."),
        })
        .describe("The balance in OpenRouter's format."),
    })
    .meta({ id: "Credits" }),
);

const balanceHeader = brandHeader("Credits-Balance");

/** Returns a workspace's balance and its two parts, which add up to it, in USD. */
export function shownBalances({ monthlyNano, topupNano }: WorkspaceAccount): {
  balance: number;
  monthly_balance: number;
  topup_balance: number;
} {
  const { sum, first, second } = sumSixDecimals(monthlyNano, topupNano);
  return { balance: sum, monthly_balance: first, topup_balance: second };
}

export const credits = defineEndpoint({
  method: "GET",
  path: "/credits",
  base: "api",
  access: { llmKey: true, managementScope: "read:credits", session: true },
  counting: "at-door",
  summary: "Show the balance of the workspace.",
  tag: "Account",
  response: creditsSchema,
  encodeError: encodeContractError,
  async handle(context, { ledger, clock }: Pick<Dependencies, "ledger" | "clock">) {
    const { workspace } = context.caller;
    await ledger.refresh(workspace.id);
    const account = ledger.book.workspace(workspace.id);
    const today = Math.floor(clock.nowMs() / dayMs);
    const balances = shownBalances(account);
    const used = usdSixDecimals(account.usedNano);
    return context.json(
      {
        ...balances,
        used,
        today_cost: usdSixDecimals(account.day === today ? account.dayNano : 0n),
        currency: "usd",
        data: {
          total_credits: usdSixDecimals(balanceOf(account) + account.usedNano),
          total_usage: used,
        },
      },
      { headers: { [balanceHeader]: String(balances.balance), "cache-control": "no-store" } },
    );
  },
});

const entrySchema = lazily(() =>
  z
    .object({
      id: z.string(),
      object: z.literal("credit_transaction"),
      at: z.string(),
      kind: z
        .enum(["charges", "topup", "grant", "bootstrap", "refund", "expiry"])
        .describe(
          "charges: the charges of a UTC day, at its end. expiry: monthly credits that expired.",
        ),
      bucket: z
        .enum(["monthly", "topup"])
        .nullable()
        .describe("Null for charges, which use both buckets."),
      amount: z.number().describe("Amount in USD; negative for credits that left the balance."),
      balance: z.number().describe("Balance after this entry, in USD."),
      requests: z.int().nullable().describe("Number of requests that were charged."),
      reference: z.string().nullable(),
    })
    .meta({ id: "CreditTransaction" }),
);

const entryObject = (entry: StatementEntry): AnswerOf<typeof entrySchema> => ({
  id: entry.id,
  object: "credit_transaction",
  at: new Date(entry.atMs).toISOString(),
  kind: entry.kind,
  bucket: entry.bucket,
  amount: usdFromNano(entry.amountNano),
  balance: usdFromNano(entry.balanceNano),
  requests: entry.requests,
  reference: entry.reference,
});

/**
 * Returns the cursor that callers pass on. It names the last entry of a page, and the balance
 * before that entry.
 */
const cursorText = ({ atMs, id, balanceNano, amountNano }: StatementEntry): string =>
  Buffer.from(`${atMs} ${balanceNano - amountNano} ${id}`).toString("base64url");

function cursorIn(query: URLSearchParams): StatementCursor | undefined {
  const text = query.get("cursor");
  if (text === null) return undefined;
  const [, atMs, balanceNano, id] =
    /^(\d{1,15}) (-?\d{1,19}) ([\w-]{1,200})$/.exec(Buffer.from(text, "base64url").toString()) ??
    [];
  if (atMs === undefined || balanceNano === undefined || id === undefined) {
    throw badField("cursor", "is none of this list. Leave it out for the newest entries.");
  }
  return { atMs: Number(atMs), balanceNano: BigInt(balanceNano), id };
}

/** The most entries that an offset leaves out, all of which are read. */
const offsetMax = 10_000;

function offsetIn(query: URLSearchParams): number {
  const offset = Number(query.get("offset") || "0");
  if (Number.isInteger(offset) && offset >= 0 && offset <= offsetMax) return offset;
  throw badField(
    "offset",
    `must be a whole number from 0 to ${offsetMax}. Use cursor to go further.`,
  );
}

export const listCreditTransactions = defineEndpoint({
  method: "GET",
  path: "/credits/transactions",
  base: "api",
  access: { managementScope: "read:credits", session: true },
  counting: "at-door",
  summary: "List the entries of the statement.",
  description:
    "Newest first: top-ups, grants, refunds, monthly credits that expired, and the charges of each UTC day. The amounts add up to " +
    "the balance. next_cursor, sent as cursor, returns older entries.",
  tag: "Account",
  query: z.object({
    ...entryParameters,
    offset: z
      .string()
      .optional()
      .describe(`Number of entries to leave out, where no cursor is sent, at most ${offsetMax}.`),
  }),
  response: () => listSchema(entrySchema()),
  encodeError: encodeContractError,
  async handle(context, { statements }: Pick<Dependencies, "statements">) {
    const limit = entryLimit(context.query);
    const before = cursorIn(context.query);
    const askedOffset = offsetIn(context.query);
    const offset = before === undefined ? askedOffset : 0;
    const read = await statements.page(workspaceOf(context).id, {
      before,
      limit: offset + limit + 1,
    });
    const { data, place } = cutPage(read.slice(offset), limit, cursorText);
    return context.json(
      { object: "list", data: data.map(entryObject), ...place },
      { headers: neverCached },
    );
  },
});
