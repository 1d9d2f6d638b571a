import { z } from "zod";
import type { StatementCursor, StatementEntry } from "../../account/ledger/statement.ts";
import { defineEndpoint } from "../../http/endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import { GatewayError } from "../../platform/lib/errors.ts";
import { usdFromNano } from "../../platform/lib/money.ts";
import type { Dependencies } from "../dependencies.ts";
import { workspaceOf } from "./account-caller.ts";

const pageDefault = 50;
const pageMax = 200;

const entrySchema = z
  .object({
    id: z.string(),
    object: z.literal("credit_transaction"),
    at: z.string(),
    kind: z
      .enum(["charges", "topup", "grant", "bootstrap", "refund", "expiry"])
      .describe(
        "charges are those of a UTC day, at its end; expiry is what lapsed of monthly credits.",
      ),
    bucket: z
      .enum(["monthly", "topup"])
      .nullable()
      .describe("Null for charges, which are paid from both."),
    amount: z.number().describe("USD, negative where credits went."),
    balance: z.number().describe("USD after this entry."),
    requests: z.int().nullable().describe("Requests that were charged for."),
    reference: z.string().nullable(),
  })
  .meta({ id: "CreditTransaction" });

const entryObject = (entry: StatementEntry): z.infer<typeof entrySchema> => ({
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

/** The cursor as callers pass it on; it names the entry that a page ended with, and the balance before that. */
const cursorText = ({ atMs, id, balanceNano, amountNano }: StatementEntry): string =>
  Buffer.from(`${atMs} ${balanceNano - amountNano} ${id}`).toString("base64url");

function cursorIn(query: URLSearchParams): StatementCursor | undefined {
  const text = query.get("cursor");
  if (text === null) return undefined;
  const [, atMs, balanceNano, id] =
    /^(\d{1,15}) (-?\d{1,19}) ([\w-]{1,200})$/.exec(Buffer.from(text, "base64url").toString()) ??
    [];
  if (atMs === undefined || balanceNano === undefined || id === undefined) {
    throw new GatewayError(
      "bad_request",
      "cursor: is none of this list. Leave it out for the newest entries.",
      { param: "cursor" },
    );
  }
  return { atMs: Number(atMs), balanceNano: BigInt(balanceNano), id };
}

function limitIn(query: URLSearchParams): number {
  const limit = Number(query.get("limit") ?? pageDefault);
  if (Number.isInteger(limit) && limit >= 1 && limit <= pageMax) return limit;
  throw new GatewayError("bad_request", `limit: must be a whole number from 1 to ${pageMax}.`, {
    param: "limit",
  });
}

/** Lists what moved the balance of the workspace. */
export const listCreditTransactions = defineEndpoint<Dependencies>({
  method: "GET",
  path: "/credits/transactions",
  base: "api",
  access: { managementScope: "read:credits", session: true },
  counting: "at-door",
  summary: "List what moved the balance: the statement.",
  description:
    "Newest first: top-ups, grants, refunds, monthly credits that lapsed, and what was charged on each UTC day. All amounts add " +
    "up to the balance. next_cursor, sent as cursor, gives the entries before these.",
  tag: "Account",
  query: z.object({
    limit: z
      .string()
      .optional()
      .describe(`Entries on a page, ${pageDefault} unless it is given, at most ${pageMax}.`),
    cursor: z.string().optional().describe("next_cursor of the page before."),
  }),
  response: z.object({
    object: z.literal("list"),
    data: z.array(entrySchema),
    has_more: z.boolean(),
    next_cursor: z.string().nullable(),
  }),
  encodeError: encodeContractError,
  async handle(context, { statements }) {
    const limit = limitIn(context.query);
    const found = await statements.page(workspaceOf(context).id, {
      before: cursorIn(context.query),
      limit: limit + 1,
    });
    const shown = found.slice(0, limit);
    const last = shown.at(-1);
    const more = found.length > limit && last !== undefined;
    return context.json(
      {
        object: "list",
        data: shown.map(entryObject),
        has_more: more,
        next_cursor: more ? cursorText(last) : null,
      },
      { headers: { "cache-control": "no-store" } },
    );
  },
});
