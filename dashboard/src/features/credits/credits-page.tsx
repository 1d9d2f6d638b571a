import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { PageHead } from "../../app/shell.tsx";
import { ApiError } from "../../lib/api.ts";
import { localTime, usd } from "../../lib/format.ts";
import { Actions, Button, Card, Empty, Field, Input, Loaded, Problem, Stat, Stats, Status } from "../../ui/parts.tsx";
import { Table } from "../../ui/table.tsx";
import { createTopUp, creditsQuery, topUpsQuery } from "./api.ts";

function TopUpForm() {
  const [amount, setAmount] = useState("10");
  const topUp = useMutation({
    mutationFn: () => createTopUp(Number(amount)),
    onSuccess: ({ url }) => { if (url) location.assign(url); },
  });
  const notConfigured = topUp.error instanceof ApiError && topUp.error.status === 501;
  return (
    <Card title="Top up">
      <form onSubmit={(event) => { event.preventDefault(); topUp.mutate(); }}>
        <Field label="Credits in USD" hint="A card fee of 5 % plus $0.50 is added. You pay on the card provider's page.">
          {(id) => <Input id={id} type="number" min="1" step="0.01" value={amount} onChange={(event) => setAmount(event.target.value)} required />}
        </Field>
        <br />
        <Actions><Button type="submit" disabled={topUp.isPending}>Top up</Button></Actions>
      </form>
      {topUp.error === null ? null : <Problem error={notConfigured ? new Error("This installation takes no card payments. Its operator can grant credits.") : topUp.error} />}
    </Card>
  );
}

/** What is left, where it came from, and how to add to it. */
export function CreditsPage() {
  const credits = useQuery(creditsQuery);
  const topUps = useQuery({ ...topUpsQuery, retry: false });
  return (
    <>
      <PageHead title="Credits" />
      <Stats>
        <Stat name="Balance" value={usd(credits.data?.balance)} note="Monthly credits are spent first." />
        <Stat name="Monthly credits" value={usd(credits.data?.monthly_balance)} note="Lapse at the end of the month" />
        <Stat name="Top-ups" value={usd(credits.data?.topup_balance)} note="Never expire" />
        <Stat name="Spent in all" value={usd(credits.data?.used)} note={`${usd(credits.data?.today_cost)} today (UTC)`} />
      </Stats>
      <TopUpForm />
      <Card title="History" flush>
        <Loaded query={topUps} height={120}>
          {({ data: rows }) => rows.length === 0 ? <Empty>No top-up yet.</Empty> : (
            <Table rows={rows} rowKey={({ id }) => id} caption="Top-ups" columns={[
              { head: "Time", cell: ({ created_at: at }) => localTime(at) },
              { head: "State", cell: ({ status }) => <Status kind={status === "paid" || status === "credited" ? "good" : undefined}>{status}</Status> },
              { head: "Credits", number: true, cell: ({ amount }) => usd(amount) },
            ]} />
          )}
        </Loaded>
      </Card>
    </>
  );
}
