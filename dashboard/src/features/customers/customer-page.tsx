import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, getRouteApi, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { download } from "../../lib/download.ts";
import { count, shortDay, usd } from "../../lib/format.ts";
import { useScope } from "../../lib/session.ts";
import { Actions, Button } from "../../ui/button.tsx";
import { Card, Stat, Stats } from "../../ui/card.tsx";
import { Code } from "../../ui/copy.tsx";
import { Field, Input, Select } from "../../ui/fields.tsx";
import { Confirm, Form } from "../../ui/form.tsx";
import { Empty, Loaded, Problem } from "../../ui/loaded.tsx";
import { Name } from "../../ui/values.tsx";
import { Modal } from "../../ui/overlay.tsx";
import { PageHead } from "../../ui/page.tsx";
import { RowMenu } from "../../ui/row-menu.tsx";
import { type Column, Table } from "../../ui/table.tsx";
import style from "../../ui/ui.module.css";
import { KeysCard } from "../keys/keys-card.tsx";
import {
  addCredits,
  changeCustomer,
  createKey,
  createLink,
  type Customer,
  customerKeysQuery,
  customerQuery,
  removeCustomer,
  type Statement,
  statementCsvPath,
  statementQuery,
} from "./api.ts";
import { CustomerForm } from "./customer-form.tsx";
import { CustomerStatus, planText } from "./customer-status.tsx";

const route = getRouteApi("/customers/$id");

/** The seconds that a link to the balance works: a week. */
const linkSeconds = 7 * 86_400;

const byModelOrDay = [
  ["model", "By model"],
  ["day", "By day"],
] as const;
type Grouping = (typeof byModelOrDay)[number][0];

/** A line of the statement, of a model or of a day. */
interface Sum {
  name: string;
  requests: number;
  cost: number;
  price: number;
  margin: number;
}

/** Sums the lines of a statement: models from the dearest, days from the newest. */
function sumsOf(lines: Statement["data"], by: Grouping): Sum[] {
  const sums = new Map<string, Sum>();
  for (const line of lines) {
    const name = line[by];
    const sum = sums.get(name) ?? { name, requests: 0, cost: 0, price: 0, margin: 0 };
    for (const figure of ["requests", "cost", "price", "margin"] as const)
      sum[figure] += line[figure];
    sums.set(name, sum);
  }
  return [...sums.values()].sort((one, other) =>
    by === "model" ? other.price - one.price : other.name.localeCompare(one.name),
  );
}

const columnsOf = (by: Grouping): readonly Column<Sum>[] => [
  {
    head: by === "model" ? "Model" : "Day, UTC",
    phone: "title",
    cell: ({ name }) => (by === "model" ? <Name>{name}</Name> : shortDay(`${name}T00:00:00Z`)),
  },
  {
    head: "Requests",
    number: true,
    phone: "when",
    unit: "requests",
    cell: ({ requests }) => count(requests),
  },
  { head: "Your cost", number: true, cell: ({ cost }) => usd(cost) },
  { head: "Its price", number: true, phone: "figure", cell: ({ price }) => usd(price) },
  { head: "Margin", number: true, cell: ({ margin }) => usd(margin) },
];

/** What the customer used this month, by model or by day; the file has each model of each day. */
function StatementCard({ id }: Pick<Customer, "id">) {
  const statement = useQuery(statementQuery(id));
  const [by, setBy] = useState<Grouping>("model");
  const saving = useMutation({ mutationFn: () => download(statementCsvPath(id), "statement.csv") });
  return (
    <Card
      title="This month"
      flush
      actions={
        <Actions>
          <Select label="Sums" value={by} options={byModelOrDay} onChange={setBy} />
        </Actions>
      }
    >
      {saving.error === null ? null : <Problem error={saving.error} />}
      <Loaded query={statement} height={160}>
        {({ data: rows, billed }) =>
          rows.length === 0 ? (
            <Empty>This customer has used nothing this month.</Empty>
          ) : (
            <>
              <Table
                rows={sumsOf(rows, by)}
                rowKey={({ name }) => name}
                caption={`Use by ${by}`}
                columns={columnsOf(by)}
              />
              <div className={style.filters}>
                <span>{usd(billed)} billed this month</span>
                <Button look="plain" disabled={saving.isPending} onClick={() => saving.mutate()}>
                  Download CSV
                </Button>
              </div>
            </>
          )
        }
      </Loaded>
    </Card>
  );
}

/** Adds credits to a prepaid customer. */
function CreditsCard({ customer: { id, credits } }: { customer: Customer }) {
  const queries = useQueryClient();
  const [amount, setAmount] = useState("");
  const add = useMutation({
    meta: { done: "Credits added" },
    mutationFn: addCredits,
    onSuccess: () => queries.invalidateQueries({ queryKey: ["customers"] }),
  });
  return (
    <Card title="Credits">
      <p>{usd(credits)} were added so far. A negative amount takes credits back.</p>
      <Form
        inline
        action="Add credits"
        work={add}
        onSubmit={() => add.mutate({ id, amount: Number(amount) })}
      >
        <Field param="amount" label="Add, in USD">
          {(field) => (
            <Input
              id={field}
              type="number"
              step="any"
              required
              value={amount}
              onChange={({ target }) => setAmount(target.value)}
            />
          )}
        </Field>
      </Form>
    </Card>
  );
}

/** Changes, suspends and removes a customer, and shares its balance. */
function Change({ customer }: { customer: Customer }) {
  const { id, name, status } = customer;
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [isEdited, setEdited] = useState(false);
  const [isPaused, setPaused] = useState(false);
  const [isDoomed, setDoomed] = useState(false);
  const refresh = (): Promise<void> => queries.invalidateQueries({ queryKey: ["customers"] });
  const suspend = useMutation({
    meta: { done: "Customer changed" },
    mutationFn: changeCustomer,
    onSuccess: () => {
      setPaused(false);
      return refresh();
    },
  });
  const link = useMutation({ mutationFn: createLink });
  const remove = useMutation({
    meta: { done: "Customer removed" },
    mutationFn: () => removeCustomer(id),
    onSuccess: async () => {
      await navigate({ to: "/customers" });
      await refresh();
    },
  });
  const isSuspended = status === "suspended";
  const problem = isPaused ? null : (suspend.error ?? link.error);
  return (
    <>
      <Button onClick={() => setEdited(true)}>Edit plan</Button>
      <Button look="plain" onClick={() => link.mutate({ id, expires_in: linkSeconds })}>
        Share balance
      </Button>
      <RowMenu
        label={`Actions of ${name}`}
        actions={[
          isSuspended
            ? ["Serve again", () => suspend.mutate({ id, suspended: false })]
            : ["Suspend", () => setPaused(true)],
          ["Remove", () => setDoomed(true)],
        ]}
      />
      <Modal
        title="Balance of the customer"
        open={link.data !== undefined || problem !== null}
        onClose={() => {
          link.reset();
          suspend.reset();
        }}
      >
        {problem === null ? null : <Problem error={problem} />}
        {link.data === undefined ? null : (
          <>
            <p>
              Who has this link sees what {name} used and has left, for a week and without signing
              in.
            </p>
            <Code text={link.data.url} label="Copy the link" />
          </>
        )}
      </Modal>
      <Confirm
        title={`Suspend ${name}`}
        open={isPaused}
        onClose={() => setPaused(false)}
        onConfirm={() => suspend.mutate({ id, suspended: true })}
        action="Suspend customer"
        work={suspend}
      >
        <p>Its requests are refused at once, until it is served again.</p>
      </Confirm>
      <Modal title="Edit plan" open={isEdited} onClose={() => setEdited(false)}>
        <CustomerForm
          customer={customer}
          onDone={() => {
            setEdited(false);
            void refresh();
          }}
        />
      </Modal>
      <Confirm
        title={`Remove ${name}`}
        open={isDoomed}
        onClose={() => setDoomed(false)}
        onConfirm={() => remove.mutate()}
        action="Remove customer"
        work={remove}
      >
        <p>Its keys are deleted. What it used stays in the records.</p>
      </Confirm>
    </>
  );
}

/** What a customer used in its period, what it pays for it, and what is left. */
function Figures({ customer }: { customer: Customer }) {
  const { usage, billed, remaining, period_end: end } = customer;
  return (
    <Stats>
      <Stat
        name="Left"
        value={remaining === null ? "no limit" : usd(remaining)}
        note={`${planText(customer)}${end === null ? "" : `, until ${shortDay(end)}`}`}
      />
      <Stat name="Its price" value={usd(usage.price)} note={`${usd(billed)} billed`} />
      <Stat name="Your cost" value={usd(usage.cost)} />
      <Stat name="Margin" value={usd(usage.margin)} note="price less cost" />
      <Stat name="Requests" value={count(usage.requests)} />
    </Stats>
  );
}

/** One customer: what is left, what it used, its keys, and its plan. */
export function CustomerPage() {
  const { id } = route.useParams();
  const customer = useQuery(customerQuery(id));
  const keys = useQuery(customerKeysQuery(id));
  const mayWrite = useScope("write:llm-keys");
  const { data } = customer;
  return (
    <>
      <PageHead
        title={data?.name ?? "Customer"}
        within={<Link to="/customers">Customers</Link>}
        state={data === undefined ? null : <CustomerStatus status={data.status} />}
      >
        {mayWrite && data !== undefined ? <Change customer={data} /> : null}
      </PageHead>
      <Loaded query={customer} height={88}>
        {(shown) => <Figures customer={shown} />}
      </Loaded>
      <StatementCard id={id} />
      <KeysCard
        of="customer"
        keys={keys}
        empty="No key of its own. Requests name the customer, or one of its keys sends them."
        onCreate={mayWrite ? (name) => createKey({ id, name }) : undefined}
        changes={["customers", id, "keys"]}
      />
      {mayWrite && data?.plan?.type === "prepaid" ? <CreditsCard customer={data} /> : null}
    </>
  );
}
