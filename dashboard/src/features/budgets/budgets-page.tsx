import { zoneName } from "../../lib/time.ts";
import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useScope } from "../../lib/session.ts";
import { PageHead } from "../../ui/page.tsx";
import { shortDay, usd } from "../../lib/format.ts";
import { Button } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { Code } from "../../ui/copy.tsx";
import { Confirm } from "../../ui/form.tsx";
import { Empty, Loaded, Problem } from "../../ui/loaded.tsx";
import { LoadedPages } from "../../ui/list-pages.tsx";
import { Moment, Name, Status } from "../../ui/values.tsx";
import { Bar } from "../../ui/bar.tsx";
import { Modal } from "../../ui/overlay.tsx";
import { RowMenu } from "../../ui/row-menu.tsx";
import { Table } from "../../ui/table.tsx";
import style from "../../ui/ui.module.css";
import { keysQuery } from "../keys/api.ts";
import { teamsQuery } from "../teams/api.ts";
import { useNames } from "../usage/use-names.ts";
import {
  type Budget,
  type MadeBudget,
  type TestedBudget,
  alertsQuery,
  budgetPagesQuery,
  deleteBudget,
  rotateSecret,
  testBudget,
} from "./api.ts";
import { BudgetForm } from "./budget-form.tsx";

const aboutOf = ({ scope, subject }: Budget, names: ReadonlyMap<string, string>): string =>
  scope === "workspace"
    ? "the whole workspace"
    : subject === "*"
      ? `each ${scope}`
      : `${scope === "user" ? "person" : scope} ${names.get(subject ?? "") ?? subject}`;

/** The names of what budgets are about, by ids, as far as the session may read them. */
function useSubjects(budgets: readonly Budget[]): ReadonlyMap<string, string> {
  const seesKeys = useScope("read:llm-keys");
  const has = (wanted: string): boolean =>
    seesKeys && budgets.some(({ scope }) => scope === wanted);
  const keys = useQuery({ ...keysQuery, enabled: has("key") });
  const teams = useQuery({ ...teamsQuery, enabled: has("team") });
  const { people } = useNames(has("user") ? ["person"] : []);
  const named = [...(keys.data?.data ?? []), ...(teams.data?.data ?? [])];
  return new Map([...people, ...named.map(({ id, name }) => [id, name] as const)]);
}

function Alerts({ budgets }: { budgets: readonly Budget[] }) {
  const alerts = useQuery(alertsQuery);
  const names = new Map(budgets.map(({ id, name }) => [id, name]));
  return (
    <Card title="Alerts" flush>
      <Loaded query={alerts} height={96}>
        {({ data: rows }) =>
          rows.length === 0 ? (
            <Empty>No threshold was reached yet. Send a test to see that alerts arrive.</Empty>
          ) : (
            <Table
              rows={rows}
              rowKey={({ id }) => id}
              caption="Alerts"
              columns={[
                {
                  head: `Time, ${zoneName()}`,
                  phone: "when",
                  cell: ({ at }) => <Moment at={at} />,
                },
                {
                  head: "Budget",
                  phone: "title",
                  cell: ({ budget_id: id }) => <Name>{names.get(id) ?? id}</Name>,
                },
                {
                  head: "Reached",
                  number: true,
                  phone: "state",
                  unit: "reached",
                  cell: ({ threshold }) => `${threshold} %`,
                },
                {
                  head: "Spent",
                  number: true,
                  phone: "figure",
                  cell: ({ spent, limit }) => `${usd(spent)} of ${usd(limit)}`,
                },
                {
                  head: "Messages",
                  phone: "note",
                  cell: ({ deliveries }) =>
                    deliveries.length === 0 ? (
                      <span className={style.notOnPhone}>none to send</span>
                    ) : (
                      deliveries.map((delivery) => (
                        <div key={delivery.id}>
                          <Status
                            kind={
                              delivery.status === "delivered"
                                ? "good"
                                : delivery.status === "failed"
                                  ? "bad"
                                  : "warning"
                            }
                          >
                            {delivery.status}
                          </Status>
                          {` ${delivery.target}${delivery.last_error === null ? "" : `: ${delivery.last_error}`}`}
                        </div>
                      ))
                    ),
                },
              ]}
            />
          )
        }
      </Loaded>
    </Card>
  );
}

function Tested({ result }: { result: TestedBudget }) {
  if (result.deliveries.length === 0)
    return <p>This budget has no receiver. Add an address or a webhook.</p>;
  return (
    <ul>
      {result.deliveries.map(({ target, delivered, error }) => (
        <li key={target}>
          <Status kind={delivered ? "good" : "bad"}>{delivered ? "delivered" : "failed"}</Status>{" "}
          {target} {error}
        </li>
      ))}
    </ul>
  );
}

/** Budgets of the workspace: what is spent of them, what they refuse, and where alerts go. */
export function BudgetsPage() {
  const mayWrite = useScope("write:security");
  const queries = useQueryClient();
  const budgets = useInfiniteQuery(budgetPagesQuery);
  const rows = budgets.data?.pages.flatMap(({ data }) => data) ?? [];
  const names = useSubjects(rows);
  const [edited, setEdited] = useState<Budget | "new">();
  const [doomed, setDoomed] = useState<Budget>();
  const [secret, setSecret] = useState<string>();
  const refresh = (): Promise<void> => queries.invalidateQueries({ queryKey: ["budgets"] });
  const test = useMutation({ mutationFn: testBudget });
  const show = ({ webhook_secret: shown }: MadeBudget): void => setSecret(shown ?? undefined);
  const rotate = useMutation({ mutationFn: rotateSecret, onSuccess: show });
  const remove = useMutation({
    meta: { done: "Budget deleted" },
    mutationFn: deleteBudget,
    onSuccess: () => {
      setDoomed(undefined);
      return refresh();
    },
  });
  const saved = (made: MadeBudget | undefined): void => {
    setEdited(undefined);
    if (made !== undefined) show(made);
    void refresh();
  };
  const create = mayWrite ? <Button onClick={() => setEdited("new")}>Create budget</Button> : null;
  return (
    <>
      <PageHead title="Budgets">{create}</PageHead>
      {rotate.error === null ? null : <Problem error={rotate.error} />}
      <Card flush>
        <LoadedPages query={budgets} height={240}>
          {(shown) =>
            shown.length === 0 ? (
              <Empty action={create}>
                No budget yet. A budget reports what is spent, or refuses what would cost more.
              </Empty>
            ) : (
              <Table
                rows={shown}
                rowKey={({ id }) => id}
                caption="Budgets"
                columns={[
                  {
                    head: "Name",
                    phone: "title",
                    cell: (budget) => (
                      <>
                        <Name>{budget.name}</Name>
                        <span className={style.under}>{aboutOf(budget, names)}</span>
                      </>
                    ),
                  },
                  {
                    head: "Spent",
                    phone: "figure",
                    cell: ({ name, spent, limit, thresholds }) => (
                      <>
                        <div>
                          {usd(spent)} of {usd(limit)}
                        </div>
                        <Bar label={name} share={spent / limit} marks={thresholds} />
                      </>
                    ),
                  },
                  {
                    head: "Period",
                    phone: "when",
                    cell: ({ period, period_end: end, time_zone: zone }) =>
                      period === "total"
                        ? "all time"
                        : `${period}, ${`until ${shortDay(end, zone)}`.replaceAll(" ", "\u00a0")} (${zone})`,
                  },
                  {
                    head: "When spent",
                    phone: "state",
                    cell: ({ action, spent, limit }) =>
                      action === "block" ? (
                        <Status kind={spent >= limit ? "bad" : "warning"}>
                          {spent >= limit ? "refusing" : "refuses"}
                        </Status>
                      ) : (
                        <Status>reports</Status>
                      ),
                  },
                  {
                    head: "Alerts go to",
                    offTablet: true,
                    cell: ({ emails, webhook_url: url }) =>
                      [...emails, ...(url === null ? [] : [url])].join(", ") || "this page only",
                  },
                  {
                    head: "Actions",
                    phone: "actions",
                    cell: (budget) =>
                      mayWrite ? (
                        <RowMenu
                          label={`Actions of ${budget.name}`}
                          actions={[
                            ["Edit", () => setEdited(budget)],
                            ["Send test", () => test.mutate(budget.id)],
                            ...(budget.webhook_url === null
                              ? []
                              : [["Rotate secret", () => rotate.mutate(budget.id)] as const]),
                            ["Delete", () => setDoomed(budget)],
                          ]}
                        />
                      ) : null,
                  },
                ]}
              />
            )
          }
        </LoadedPages>
      </Card>
      <Alerts budgets={rows} />
      <Modal
        title={edited === "new" ? "Create budget" : "Edit budget"}
        open={edited !== undefined}
        onClose={() => setEdited(undefined)}
      >
        <BudgetForm budget={edited === "new" ? undefined : edited} onDone={saved} />
      </Modal>
      <Modal
        title="Test of the alerts"
        open={test.data !== undefined || test.error !== null}
        onClose={() => test.reset()}
      >
        {test.error === null ? null : <Problem error={test.error} />}
        {test.data === undefined ? null : <Tested result={test.data} />}
      </Modal>
      <Modal
        title="Secret of the webhook"
        open={secret !== undefined}
        onClose={() => setSecret(undefined)}
      >
        <p>
          Copy it now. It is not shown again; messages are signed with it (X-Service-Signature).
        </p>
        <Code text={secret ?? ""} />
      </Modal>
      <Confirm
        title={`Delete ${doomed?.name ?? ""}`}
        open={doomed !== undefined}
        onClose={() => setDoomed(undefined)}
        action="Delete budget"
        work={remove}
        onConfirm={() => doomed && remove.mutate(doomed.id)}
      >
        <p>
          Its alerts go with it
          {doomed?.action === "block" ? ", and it refuses nothing from now on" : ""}.
        </p>
      </Confirm>
    </>
  );
}
