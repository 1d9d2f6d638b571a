import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { download } from "../../lib/download.ts";
import { count, shortDay, usd } from "../../lib/format.ts";
import { useScope } from "../../lib/session.ts";
import { Confirm, Form } from "../../ui/form.tsx";
import { Modal } from "../../ui/overlay.tsx";
import { PageHead } from "../../ui/page.tsx";
import {
  Actions,
  Button,
  Card,
  Code,
  Empty,
  Field,
  Input,
  Loaded,
  Name,
  Problem,
  Stat,
  Stats,
  Status,
} from "../../ui/parts.tsx";
import { Table } from "../../ui/table.tsx";
import {
  addCredits,
  changeCustomer,
  createKey,
  createLink,
  type Customer,
  customerKeysQuery,
  customerQuery,
  removeCustomer,
  statementCsvPath,
  statementQuery,
} from "./api.ts";
import { CustomerForm } from "./customer-form.tsx";
import { CustomerStatus } from "./customer-status.tsx";

const route = getRouteApi("/customers/$id");

/** The seconds that a link to the balance works: a week. */
const linkSeconds = 7 * 86_400;

/** What the customer used this month, by day and model. */
function StatementCard({ id }: Pick<Customer, "id">) {
  const statement = useQuery(statementQuery(id));
  const saving = useMutation({ mutationFn: () => download(statementCsvPath(id), "statement.csv") });
  return (
    <Card title="This month" flush>
      {saving.error === null ? null : <Problem error={saving.error} />}
      <Loaded query={statement} height={160}>
        {({ data: rows, billed }) =>
          rows.length === 0 ? (
            <Empty>Nothing was used this month.</Empty>
          ) : (
            <>
              <Table
                rows={rows}
                rowKey={({ day, model }) => `${day} ${model}`}
                caption="Use by day and model"
                columns={[
                  { head: "Day", cell: ({ day }) => shortDay(`${day}T00:00:00Z`) },
                  { head: "Model", cell: ({ model }) => <Name>{model}</Name> },
                  { head: "Requests", number: true, cell: ({ requests }) => count(requests) },
                  { head: "Cost", number: true, cell: ({ cost }) => usd(cost) },
                  { head: "Price", number: true, cell: ({ price }) => usd(price) },
                  { head: "Margin", number: true, cell: ({ margin }) => usd(margin) },
                ]}
              />
              <Actions>
                <span>{usd(billed)} billed</span>
                <Button look="plain" disabled={saving.isPending} onClick={() => saving.mutate()}>
                  Download CSV
                </Button>
              </Actions>
            </>
          )
        }
      </Loaded>
    </Card>
  );
}

/** The keys of a customer, and a form for another one. */
function KeysCard({ id, mayWrite }: Pick<Customer, "id"> & { mayWrite: boolean }) {
  const queries = useQueryClient();
  const keys = useQuery(customerKeysQuery(id));
  const [name, setName] = useState("");
  const create = useMutation({
    mutationFn: createKey,
    onSuccess: () => queries.invalidateQueries({ queryKey: ["customers", id, "keys"] }),
  });
  return (
    <Card title="Keys">
      <Loaded query={keys} height={64}>
        {({ data: rows }) =>
          rows.length === 0 ? (
            <Empty>
              No key of its own. Requests name the customer, or one of its keys sends them.
            </Empty>
          ) : (
            <Table
              rows={rows}
              rowKey={(key) => key.id}
              caption="Keys of the customer"
              columns={[
                { head: "Name", cell: (key) => <Name>{key.name}</Name> },
                { head: "Key", cell: ({ label }) => label },
                {
                  head: "State",
                  cell: ({ disabled }) => <Status>{disabled ? "disabled" : "active"}</Status>,
                },
              ]}
            />
          )
        }
      </Loaded>
      {create.data === undefined ? null : <Code text={create.data.key} label="Copy the key" />}
      {mayWrite ? (
        <Form action="Create key" work={create} onSubmit={() => create.mutate({ id, name })}>
          <Field label="Name of a new key" hint="Its secret is shown once.">
            {(field) => (
              <Input
                id={field}
                required
                value={name}
                onChange={({ target }) => setName(target.value)}
              />
            )}
          </Field>
        </Form>
      ) : null}
    </Card>
  );
}

/** Adds credits to a prepaid customer. */
function CreditsCard({ customer: { id, credits } }: { customer: Customer }) {
  const queries = useQueryClient();
  const [amount, setAmount] = useState("");
  const add = useMutation({
    mutationFn: addCredits,
    onSuccess: () => queries.invalidateQueries({ queryKey: ["customers"] }),
  });
  return (
    <Card title="Credits">
      <p>{usd(credits)} were added so far.</p>
      <Form
        action="Add credits"
        work={add}
        onSubmit={() => add.mutate({ id, amount: Number(amount) })}
      >
        <Field label="Add, in USD" hint="A negative amount takes credits back.">
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
  const [isDoomed, setDoomed] = useState(false);
  const refresh = (): Promise<void> => queries.invalidateQueries({ queryKey: ["customers"] });
  const suspend = useMutation({ mutationFn: changeCustomer, onSuccess: refresh });
  const link = useMutation({ mutationFn: createLink });
  const remove = useMutation({
    mutationFn: () => removeCustomer(id),
    onSuccess: async () => {
      await navigate({ to: "/customers" });
      await refresh();
    },
  });
  const isSuspended = status === "suspended";
  const problem = suspend.error ?? link.error;
  return (
    <Card title="Change">
      {problem === null ? null : <Problem error={problem} />}
      {link.data === undefined ? null : <Code text={link.data.url} label="Copy the link" />}
      <Actions>
        <Button onClick={() => setEdited(true)}>Edit plan</Button>
        <Button
          look="plain"
          onClick={() => suspend.mutate({ id, suspended: !isSuspended })}
          disabled={suspend.isPending}
        >
          {isSuspended ? "Serve again" : "Suspend"}
        </Button>
        <Button look="plain" onClick={() => link.mutate({ id, expires_in: linkSeconds })}>
          Share balance
        </Button>
        <Button look="plain" onClick={() => setDoomed(true)}>
          Remove
        </Button>
      </Actions>
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
    </Card>
  );
}

const planText = ({ plan, has_own_plan: own }: Customer): string =>
  plan === null ? "no plan" : own ? plan.type : "by the rule";

/** One customer: what is left, what it used, its keys, and its plan. */
export function CustomerPage() {
  const { id } = route.useParams();
  const customer = useQuery(customerQuery(id));
  const mayWrite = useScope("write:llm-keys");
  return (
    <>
      <PageHead title="Customer" />
      <Loaded query={customer} height={240}>
        {(data) => (
          <>
            <Stats>
              <Stat name="Name" value={data.name} note={<CustomerStatus status={data.status} />} />
              <Stat
                name="Left"
                value={data.remaining === null ? "no bound" : usd(data.remaining)}
                note={planText(data)}
              />
              <Stat
                name="Price"
                value={usd(data.usage.price)}
                note={`${usd(data.billed)} billed`}
              />
              <Stat name="Cost" value={usd(data.usage.cost)} />
              <Stat name="Margin" value={usd(data.usage.margin)} />
              <Stat name="Requests" value={count(data.usage.requests)} />
            </Stats>
            {mayWrite ? <Change customer={data} /> : null}
            {mayWrite && data.plan?.type === "prepaid" ? <CreditsCard customer={data} /> : null}
            <StatementCard id={data.id} />
            <KeysCard id={data.id} mayWrite={mayWrite} />
          </>
        )}
      </Loaded>
    </>
  );
}
