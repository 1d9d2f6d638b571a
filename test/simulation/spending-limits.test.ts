import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { BlockingBudgets } from "../../src/billing/budgets/blocking-budgets.ts";
import { budgetScopes, budgetTags, type Budget } from "../../src/billing/budgets/budget.ts";
import { AccountBook } from "../../src/billing/ledger/book/account-book.ts";
import { BudgetCounters } from "../../src/billing/ledger/book/budget-counters.ts";
import type { SpendingKey } from "../../src/billing/ledger/hold-rule.ts";
import { Ledger } from "../../src/billing/ledger/ledger.ts";
import type { LedgerPort } from "../../src/billing/ledger/ledger-port.ts";
import { chargeFor } from "../../src/billing/ledger/price.ts";
import { SharedAccounts } from "../../src/billing/ledger/shared/shared-accounts.ts";
import { SharedLedger } from "../../src/billing/ledger/shared/shared-ledger.ts";
import type { UpstreamDialect } from "../../src/inference/catalog/model.ts";
import {
  affordedBy,
  costOfTokens,
  holdCeiling,
  isPaid,
  tightHold,
  type ExpectedUse,
} from "../../src/inference/pipeline/hold/hold-ceiling.ts";
import type { Candidate } from "../../src/inference/routing/candidate.ts";
import { SharedState } from "../../src/platform/shared-state/shared-state.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { MemoryCommits } from "../support/memory-commits.ts";
import { freshRedis, hasRedis } from "../support/redis.ts";
import { isNightly } from "../support/nightly.ts";
import { silentLogger } from "../support/silent-logger.ts";

/** Cases on each of the two ledgers; nightly more of them. */
const casesMost = isNightly ? 10_000 : 2_000;
/** Cases that are under way at once where each has to wait for a server. */
const atOnce = 100;

interface Asked {
  stream: boolean;
  dialect: UpstreamDialect;
  promptPico: bigint;
  completionPico: bigint;
  thoughtPico: bigint | undefined;
  largest: number | undefined;
  cap: number | undefined;
  inputTokens: number;
  choices: number;
  /** How much of what it may say a provider says, in percent. */
  saidPercent: number;
}

interface Case {
  balanceNano: bigint;
  keyLimitNano: bigint | null;
  parentLimitNano: bigint | null;
  /** Blocking budgets, with what is left of each. */
  budgets: readonly { scope: Budget["scope"]; leftNano: bigint; spentNano: bigint }[];
  requests: Asked[];
}

const amount = fc.oneof(fc.bigInt(0n, 1_000_000n), fc.bigInt(0n, 10_000_000_000n));
const pico = fc.bigInt(0n, 100_000_000n);
const asked: fc.Arbitrary<Asked> = fc.record({
  stream: fc.boolean(),
  dialect: fc.constantFrom<UpstreamDialect>(
    "openai-chat",
    "anthropic-messages",
    "openai-responses",
    "google-generate",
  ),
  promptPico: pico,
  completionPico: pico,
  thoughtPico: fc.option(pico, { nil: undefined }),
  largest: fc.option(fc.integer({ min: 1_000, max: 128_000 }), { nil: undefined }),
  cap: fc.option(fc.integer({ min: 1, max: 200_000 }), { nil: undefined }),
  inputTokens: fc.integer({ min: 1, max: 20_000 }),
  choices: fc.integer({ min: 1, max: 4 }),
  saidPercent: fc.integer({ min: 0, max: 100 }),
});
const scenario: fc.Arbitrary<Case> = fc.record({
  balanceNano: amount,
  keyLimitNano: fc.option(amount),
  parentLimitNano: fc.option(amount),
  budgets: fc.oneof(
    fc.constant<Case["budgets"]>([]),
    fc.uniqueArray(
      fc.record({ scope: fc.constantFrom(...budgetScopes), leftNano: amount, spentNano: amount }),
      { maxLength: 5, selector: ({ scope }) => scope },
    ),
  ),
  requests: fc.array(asked, { minLength: 1, maxLength: 6 }),
});

const candidateOf = ({
  dialect,
  promptPico,
  completionPico,
  thoughtPico,
  largest,
}: Asked): Candidate => {
  const thought = thoughtPico === undefined ? {} : { reasoningTokens: thoughtPico };
  const price = { inputTokens: promptPico, outputTokens: completionPico, ...thought };
  const provider = { dialects: { chat: dialect }, deviations: {} };
  const route = {
    provider,
    price: { version: "1", base: price },
    ...(largest !== undefined && { maxCompletionTokens: largest }),
  };
  // What holds do not look at is left out.
  return { model: { id: "acme/large", contextLength: 131_072 }, route } as unknown as Candidate;
};

const expectedOf = ({ inputTokens, cap, choices }: Asked): ExpectedUse => ({
  inputTokens,
  maxOutputTokens: cap,
  choices,
});

const tagsOf = (key: SpendingKey, parent: SpendingKey): string[] =>
  budgetTags({
    keyIds: [key.keyId, parent.keyId],
    userId: "usr_1",
    models: ["acme/large"],
    providers: ["acme"],
    senders: [
      { scope: "team", subject: "team_1" },
      { scope: "customer", subject: "anna" },
    ],
  });

/**
 * The blocking budgets of a case; those of a key alternate between the key and the one that made
 * it.
 */
const budgetsOf = ({ budgets }: Case, workspaceId: string): Budget[] =>
  budgets.map(({ scope, leftNano, spentNano }) => {
    const keyId = `${spentNano % 2n === 0n ? "key" : "parent"}_${workspaceId}`;
    const subjects: Readonly<Record<string, string | null>> = {
      workspace: null,
      team: "team_1",
      key: keyId,
      user: "usr_1",
      model: "acme/large",
      provider: "acme",
      customer: "anna",
    };
    return {
      id: `bud_${scope}`,
      workspaceId,
      name: scope,
      scope,
      subject: subjects[scope] ?? null,
      timeZone: null,
      period: "monthly",
      action: "block",
      limitNano: leftNano + spentNano,
      thresholds: [100],
      emails: [],
      webhookUrl: null,
      secretVersion: 1,
      createdAtMs: 0,
      updatedAtMs: null,
    };
  });

const spentOf = (each: Case | undefined, scope: Budget["scope"]): bigint =>
  each?.budgets.find((budget) => budget.scope === scope)?.spentNano ?? 0n;

/** One request from its hold to its charge; returns what was charged and what was not collected. */
async function serve(
  ledger: LedgerPort,
  {
    request,
    holdId,
    key,
    parent,
    workspaceId,
  }: {
    request: Asked;
    holdId: string;
    key: SpendingKey;
    parent: SpendingKey;
    workspaceId: string;
  },
): Promise<{ chargedNano: bigint; uncollectedNano: bigint }> {
  const [candidate, expected] = [candidateOf(request), expectedOf(request)];
  const ceilingNano = holdCeiling([candidate], expected);
  const outcome = await ledger.reserve({
    holdId,
    workspaceId,
    ceilingNano,
    ...key,
    parent,
    tags: () => tagsOf(key, parent),
    tight: () => tightHold([candidate], { expected, grows: request.stream, counts: isPaid }),
  });
  if (!outcome.ok) return { chargedNano: 0n, uncollectedNano: 0n };
  const isWhole = outcome.heldNano === ceilingNano;
  const borneNano = isWhole ? ceilingNano : request.stream ? outcome.freeNano : outcome.heldNano;
  const { tokens, isTooFew } = affordedBy(borneNano, candidate, expected);
  expect(isTooFew).toBe(false);
  const wanted = Math.floor((tokens * request.choices * request.saidPercent) / 100);
  let said = isWhole || !request.stream ? wanted : 0;
  for (let heldNano = outcome.heldNano; said < wanted; ) {
    const next = Math.min(wanted, said + 3_000);
    const neededNano = costOfTokens(next, candidate, expected);
    if (neededNano > heldNano) heldNano = await ledger.grow(holdId, neededNano);
    if (neededNano > heldNano) break;
    said = next;
  }
  const { price } = candidate.route;
  const isThought = request.thoughtPico !== undefined;
  const usage = {
    inputTokens: request.inputTokens,
    ...(isThought ? { reasoningTokens: said } : { outputTokens: said }),
  };
  const posted = await ledger.post({
    holdId,
    amountNano: price === undefined || !isPaid(candidate) ? 0n : chargeFor(price, usage),
    tags: () => tagsOf(key, parent),
    alongside: () => ({ inserts: [], adds: [] }),
  }).durable;
  return posted.ok ? posted : { chargedNano: 0n, uncollectedNano: 0n };
}

/** Serves the requests of a case at once and checks what they cost together. */
async function run(
  ledger: LedgerPort,
  { balanceNano, keyLimitNano, parentLimitNano, budgets, requests }: Case,
  workspaceId: string,
): Promise<void> {
  const limited = (keyId: string, limitNano: bigint | null): SpendingKey => ({
    keyId,
    keyLimit: limitNano === null ? null : { limitNano, windowHours: 24 },
    countsByok: false,
  });
  const key = limited(`key_${workspaceId}`, keyLimitNano);
  const parent = limited(`parent_${workspaceId}`, parentLimitNano);
  const served = await Promise.all(
    requests.map((request, index) =>
      serve(ledger, { request, holdId: `gen_${workspaceId}_${index}`, key, parent, workspaceId }),
    ),
  );
  const charged = served.reduce((sum, { chargedNano }) => sum + chargedNano, 0n);
  const bounds = [
    balanceNano,
    keyLimitNano ?? balanceNano,
    parentLimitNano ?? balanceNano,
    ...budgets.map(({ leftNano }) => leftNano),
  ];
  const most = bounds.reduce((one, other) => (one < other ? one : other));
  expect(served.map(({ uncollectedNano }) => uncollectedNano)).toEqual(served.map(() => 0n));
  expect(charged).toBeLessThanOrEqual(most);
}

const cases = (seed: number): Case[] => fc.sample(scenario, { numRuns: casesMost, seed });

describe("no request costs more than balances, limits and budgets allow, and nothing is uncollected", () => {
  test("with the books in memory", async () => {
    const clock = new FakeClock();
    const book = new AccountBook();
    const all = cases(1);
    const blocking = new BlockingBudgets();
    const budgets = new BudgetCounters({
      blocking,
      spentBy: ({ workspaceId, scope }) =>
        Promise.resolve(spentOf(all[Number(workspaceId.slice(3))], scope)),
    });
    const ledger = new Ledger({ book, commits: new MemoryCommits(), clock, budgets });
    for (const [index, each] of all.entries()) {
      book.workspace(`ws_${index}`).topupNano = each.balanceNano;
      for (const budget of budgetsOf(each, `ws_${index}`)) {
        await ledger.watch(budget);
        blocking.put(budget);
      }
      await run(ledger, each, `ws_${index}`);
    }
    expect(ledger.openHoldCount).toBe(0);
  }, 240_000);

  describe.skipIf(!hasRedis)("with the books on Valkey", () => {
    let shared: SharedState;
    beforeAll(async () => {
      shared = await SharedState.open({ url: await freshRedis(), logger: silentLogger });
    });
    afterAll(() => shared.close());

    test("shared by two gateways", async () => {
      const clock = new FakeClock();
      const all = cases(2);
      const blocking = new BlockingBudgets();
      const readings = {
        read: async (workspaceId: string, { keyIds }: { keyIds: readonly string[] }) => ({
          monthlyNano: 0n,
          topupNano: all[Number(workspaceId.slice(3))]?.balanceNano ?? 0n,
          freshMonth: "2026-11" as const,
          freshNano: 0n,
          included: [],
          keys: keyIds.map((id) => ({ id, hours: [] })),
        }),
        balances: () => Promise.reject(new Error("the database is not asked alone")),
        readSums: async (workspaceId: string, { counters }: { counters: readonly string[] }) => ({
          sums: counters.map((counter) =>
            spentOf(
              all[Number(workspaceId.slice(3))],
              budgetScopes.find((scope) => counter.startsWith(scope)) ?? "workspace",
            ),
          ),
          included: [],
        }),
      };
      const accounts = new SharedAccounts({
        shared,
        nodeId: "a",
        readings,
        nowMs: () => clock.nowMs(),
        graceMs: 0,
      });
      const ledger = new SharedLedger({
        accounts,
        blocking,
        book: new AccountBook(),
        commits: new MemoryCommits(),
        clock,
        readBook: async () => undefined,
        onError: (error) => {
          throw error;
        },
      });
      for (const [index, each] of all.entries())
        blocking.replaceWorkspace(`ws_${index}`, budgetsOf(each, `ws_${index}`));
      for (let start = 0; start < all.length; start += atOnce) {
        await Promise.all(
          all
            .slice(start, start + atOnce)
            .map((each, index) => run(ledger, each, `ws_${start + index}`)),
        );
      }
      expect(ledger.openHoldCount).toBe(0);
    }, 240_000);
  });
});
