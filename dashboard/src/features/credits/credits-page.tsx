import { zoneName } from "../../lib/time.ts";
import { useInfiniteQuery, useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useScope, useSession } from "../../lib/session.ts";
import { PageHead } from "../../ui/page.tsx";
import { count, countOf, shortDay, usd } from "../../lib/format.ts";
import { Card, Facts, Stat, Stats } from "../../ui/card.tsx";
import { Code } from "../../ui/copy.tsx";
import { Check, Field, Input } from "../../ui/fields.tsx";
import { Form } from "../../ui/form.tsx";
import { Awaiting, Empty, Loaded, Problem, Skeleton } from "../../ui/loaded.tsx";
import { LoadedPages, NextPage } from "../../ui/list-pages.tsx";
import { Moment, Status } from "../../ui/values.tsx";
import { Table } from "../../ui/table.tsx";
import {
  createTopUp,
  creditsQuery,
  invoicesQuery,
  quoteQuery,
  statementQuery,
  topUpsQuery,
  referralsQuery,
  type Transaction,
  type ReferralProgram,
} from "./api.ts";
import { AutomaticTopUps } from "./automatic.tsx";
import style from "../../ui/ui.module.css";

const promiseOf = ({ after, referrer_usd: referrer, referred_usd: referred }: ReferralProgram) =>
  `Who signs up by this link gets ${usd(referred)} of monthly credits and this workspace ${usd(referrer)}, ` +
  `${after === "sign_up" ? "at once" : "with their first top-up"}.`;

function Program({ program }: { program: ReferralProgram }) {
  const { url, signed_up: came, pending, rewarded, maximum, earned, referred } = program;
  return (
    <div className={style.stack}>
      <p>{promiseOf(program)}</p>
      <Code text={url} label="Copy link" />
      <Facts
        rows={[
          ["Signed up", count(came)],
          ["Not rewarded yet", count(pending)],
          ["Rewarded", `${count(rewarded)} of ${count(maximum)} at most`],
          ["Earned", usd(earned)],
          ...(referred === null
            ? []
            : [
                [
                  "For coming by a link",
                  referred.status === "rewarded" ? usd(referred.earned) : "with the first top-up",
                ] as const,
              ]),
        ]}
      />
    </div>
  );
}

/** The link that brings credits to both. */
function Referrals() {
  const referrals = useQuery(referralsQuery);
  return (
    <Card title="Referrals">
      <Loaded query={referrals} height={160}>
        {(program) => <Program program={program} />}
      </Loaded>
    </Card>
  );
}

function TopUpForm() {
  const [amount, setAmount] = useState("10");
  const [savesCard, setSavesCard] = useState(false);
  const quote = useQuery(quoteQuery(amount));
  const topUp = useMutation({
    mutationFn: () =>
      createTopUp({
        amount: Number(amount),
        save_card: savesCard,
        return_url: `${location.origin}/dashboard/credits`,
      }),
    onSuccess: ({ url }) => {
      if (url !== undefined) location.assign(url);
    },
  });
  const cost =
    quote.data === undefined
      ? "You pay on the card provider's page."
      : `${usd(quote.data.amount)} of credits and a fee of ${usd(quote.data.fee)}: the card is charged ${usd(quote.data.total)}.`;
  return (
    <Card title="Top up">
      <Awaiting queries={[quote]} />
      <Form
        action="Top up by card"
        work={{ isPending: topUp.isPending, error: topUp.error ?? quote.error }}
        onSubmit={() => topUp.mutate()}
      >
        <Field param="amount" label="Credits in USD" hint={cost}>
          {(id) => (
            <Input
              id={id}
              type="number"
              min="1"
              step="0.01"
              value={amount}
              onChange={(event) => setAmount(event.target.value)}
              required
            />
          )}
        </Field>
        <Check
          label="Save the card for automatic top-ups"
          checked={savesCard}
          onChange={setSavesCard}
          hint="They are agreed to separately."
        />
      </Form>
    </Card>
  );
}

const words: Record<Transaction["kind"], string> = {
  charges: "Requests",
  topup: "Top-up",
  grant: "Grant",
  bootstrap: "First credits",
  refund: "Refund",
  expiry: "Monthly credits lapsed",
};

function Statement() {
  const statement = useInfiniteQuery(statementQuery);
  const rows = statement.data?.pages.flatMap(({ data }) => data);
  return (
    <Card title="Statement" flush>
      {statement.error !== null && rows === undefined ? (
        <Problem error={statement.error} retry={() => void statement.refetch()} />
      ) : rows === undefined ? (
        <Skeleton height={200} />
      ) : rows.length === 0 ? (
        <Empty>Nothing moved the balance yet.</Empty>
      ) : (
        <Table
          rows={rows}
          rowKey={({ id }) => id}
          caption="Statement"
          columns={[
            {
              head: `Time, ${zoneName()}`,
              phone: "when",
              cell: ({ at, kind }) =>
                kind === "charges" ? (
                  `${shortDay(at)}${zoneName() === "UTC" ? "" : " (UTC)"}`
                ) : (
                  <Moment at={at} />
                ),
            },
            {
              head: "What",
              phone: "title",
              cell: ({ kind, requests }) =>
                requests === null ? words[kind] : countOf(requests, "request"),
            },
            {
              head: "From",
              phone: "state",
              cell: ({ bucket }) =>
                bucket === null
                  ? "monthly, then top-ups"
                  : bucket === "monthly"
                    ? "monthly credits"
                    : "top-ups",
            },
            {
              head: "Amount",
              phone: "figure",
              number: true,
              cell: ({ amount }) => `${amount > 0 ? "+" : "−"}${usd(Math.abs(amount))}`,
            },
            { head: "Balance after", number: true, cell: ({ balance }) => usd(balance) },
          ]}
        />
      )}
      <NextPage query={statement} />
    </Card>
  );
}

const states = { open: undefined, paid: "good", failed: "bad", expired: "warning" } as const;

function CardPayments({ mayChange }: { mayChange: boolean }) {
  const topUps = useInfiniteQuery(topUpsQuery);
  const invoices = useInfiniteQuery(invoicesQuery);
  if (topUps.isLoading) return <Skeleton height={320} />;
  return (
    <>
      {mayChange ? <TopUpForm /> : null}
      <AutomaticTopUps mayChange={mayChange} />
      <Card title="Top-ups" flush>
        <LoadedPages query={topUps} height={96}>
          {(rows) =>
            rows.length === 0 ? (
              <Empty>No top-up yet.</Empty>
            ) : (
              <Table
                rows={rows}
                rowKey={({ id }) => id}
                caption="Top-ups"
                columns={[
                  {
                    head: `Time, ${zoneName()}`,
                    phone: "when",
                    cell: ({ created_at: at }) => <Moment at={at} />,
                  },
                  {
                    head: "State",
                    phone: "state",
                    cell: ({ status, failure }) => (
                      <Status kind={states[status]}>
                        {failure === null ? status : `${status}: ${failure}`}
                      </Status>
                    ),
                  },
                  {
                    head: "Kind",
                    phone: "title",
                    cell: ({ kind }) => (kind === "automatic" ? "automatic" : "by hand"),
                  },
                  {
                    head: "Credits",
                    number: true,
                    phone: "figure",
                    cell: ({ amount }) => usd(amount),
                  },
                  { head: "Charged", number: true, cell: ({ total }) => usd(total) },
                ]}
              />
            )
          }
        </LoadedPages>
      </Card>
      <Card title="Invoices" flush>
        <LoadedPages query={invoices} height={96}>
          {(rows) =>
            rows.length === 0 ? (
              <Empty>No invoice yet. Each paid top-up has one.</Empty>
            ) : (
              <Table
                rows={rows}
                rowKey={({ id }) => id}
                caption="Invoices"
                columns={[
                  {
                    head: "Number",
                    phone: "title",
                    cell: ({ id }) => (
                      <a href={`/api/v1/credits/invoices/${id}`} target="_blank" rel="noreferrer">
                        {id}
                      </a>
                    ),
                  },
                  {
                    head: "Kind",
                    phone: "state",
                    cell: ({ object }) => (object === "invoice" ? "invoice" : "credit note"),
                  },
                  {
                    head: `Issued, ${zoneName()}`,
                    phone: "when",
                    cell: ({ issued_at: at }) => <Moment at={at} />,
                  },
                  {
                    head: "Credits",
                    number: true,
                    cell: ({ amount }) => usd(amount),
                  },
                  { head: "Fee", number: true, cell: ({ fee }) => usd(fee) },
                  { head: "Total", number: true, phone: "figure", cell: ({ total }) => usd(total) },
                ]}
              />
            )
          }
        </LoadedPages>
      </Card>
    </>
  );
}

/** How to get credits where cards are not taken. */
const NoCardPayments = () => (
  <Card title="Top up">
    <Empty>This installation takes no card payments. Its operator can grant credits.</Empty>
  </Card>
);

/** What is left, where it came from, what took it, and how to add to it. */
export function CreditsPage() {
  const mayChange = useScope("write:management-keys");
  const { data: session } = useSession();
  const credits = useQuery(creditsQuery);
  return (
    <>
      <PageHead title="Credits" />
      <Loaded query={credits} what="The balance" height={88}>
        {({
          balance,
          monthly_balance: monthly,
          topup_balance: toppedUp,
          used,
          today_cost: today,
        }) => (
          <Stats>
            <Stat name="Balance" value={usd(balance)} note="Monthly credits are spent first." />
            <Stat
              name="Monthly credits"
              value={usd(monthly)}
              note="Lapse at the end of the month (UTC)"
            />
            <Stat name="Top-ups" value={usd(toppedUp)} note="Never expire" />
            <Stat name="Spent in all" value={usd(used)} note={`${usd(today)} today (UTC)`} />
          </Stats>
        )}
      </Loaded>
      {session === undefined ? (
        <Skeleton height={96} />
      ) : session.features.card_payments ? (
        <CardPayments mayChange={mayChange} />
      ) : (
        <NoCardPayments />
      )}
      <Statement />
      {session?.features.referrals ? <Referrals /> : null}
    </>
  );
}
