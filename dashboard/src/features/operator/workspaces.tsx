import type { Bodies } from "../../lib/api-types.ts";
import { sending } from "../../lib/api.ts";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { usd } from "../../lib/format.ts";
import { Actions, Button } from "../../ui/button.tsx";
import { Field, Input, Select } from "../../ui/fields.tsx";
import { Confirm } from "../../ui/form.tsx";
import { Name, Status } from "../../ui/values.tsx";
import { Modal } from "../../ui/overlay.tsx";
import { RowMenu } from "../../ui/row-menu.tsx";
import { type Workspace, plansQuery, workspacesQuery } from "./api.ts";
import style from "../../ui/ui.module.css";
import { ChangeProblem, useChange } from "./changes.tsx";
import { SearchedTable } from "./searched-table.tsx";

const buckets = [
  ["monthly", "monthly credits, which lapse with the month"],
  ["topup", "like a top-up, which stays until it is spent"],
] as const;

/** What a workspace is called: personal ones have the same name, so their owner is named too. */
const callingOf = ({ name, owner_email: owner }: Workspace): string =>
  owner === null ? name : `${name} of ${owner}`;

/** Gives credits: what a support case or a trial needs. */
function GrantForm({ workspace, onDone }: { workspace: Workspace; onDone: () => void }) {
  const [amount, setAmount] = useState("");
  const [description, setDescription] = useState("");
  const [bucket, setBucket] = useState<(typeof buckets)[number][0]>("monthly");
  const grant = useChange("Credits granted");
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const body = {
      workspace_id: workspace.id,
      amount: Number(amount),
      bucket,
      ...(description === "" ? {} : { description }),
    };
    grant.mutate(
      { path: "/admin/grants", ...sending("POST /admin/grants", body) },
      { onSuccess: onDone },
    );
  };
  return (
    <form onSubmit={submit} className={style.form}>
      <p>
        {callingOf(workspace)} has {usd(workspace.balance)}.
      </p>
      <Field label="Kind">
        {(id) => <Select id={id} value={bucket} options={buckets} onChange={setBucket} />}
      </Field>
      <Field label="Credits in USD">
        {(id) => (
          <Input
            id={id}
            type="number"
            min="0"
            step="any"
            required
            value={amount}
            onChange={(event) => setAmount(event.target.value)}
          />
        )}
      </Field>
      <Field
        label="Why"
        hint="Kept with the grant. The workspace's audit log says that and when it was made."
      >
        {(id) => (
          <Input
            id={id}
            value={description}
            onChange={(event) => setDescription(event.target.value)}
          />
        )}
      </Field>
      <ChangeProblem error={grant.error} />
      <Actions>
        <Button type="submit" disabled={grant.isPending}>
          Grant credits
        </Button>
      </Actions>
    </form>
  );
}

/** Puts a workspace on another plan, after its effect was shown. */
function PlanForm({ workspace, onDone }: { workspace: Workspace; onDone: () => void }) {
  const plans = useQuery(plansQuery);
  const [plan, setPlan] = useState(workspace.plan);
  const change = useChange("Plan changed");
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    change.mutate(
      {
        path: `/admin/workspaces/${workspace.id}`,
        ...sending("PATCH /admin/workspaces/{id}", { plan }),
      },
      { onSuccess: onDone },
    );
  };
  const options = plans.data?.data.map(({ id }) => [id, id] as const) ?? [[plan, plan] as const];
  return (
    <form onSubmit={submit} className={style.form}>
      <p>
        {callingOf(workspace)} is on the plan {workspace.plan}. Its limits change with its next
        request.
      </p>
      <Field label={`Plan of ${workspace.name}`}>
        {(id) => <Select id={id} value={plan} options={options} onChange={setPlan} />}
      </Field>
      <ChangeProblem error={change.error} />
      <Actions>
        <Button type="submit" disabled={change.isPending || plan === workspace.plan}>
          Change plan
        </Button>
      </Actions>
    </form>
  );
}

/** Every workspace with its balance; plans, credits, and blocking. */
export function Workspaces({
  search,
  onSearch,
}: {
  search: string | undefined;
  onSearch: (text: string) => void;
}) {
  const workspaces = useQuery(workspacesQuery(search));
  const [granted, setGranted] = useState<Workspace>();
  const [planned, setPlanned] = useState<Workspace>();
  const changing = useChange("Workspace changed");
  const [blocked, setBlocked] = useState<Workspace>();
  const patch = (id: string, body: Bodies["PATCH /admin/workspaces/{id}"]): void =>
    changing.mutate(
      {
        path: `/admin/workspaces/${id}`,
        ...sending("PATCH /admin/workspaces/{id}", body),
      },
      { onSuccess: () => setBlocked(undefined) },
    );
  const blockingOf = (workspace: Workspace): readonly [string, () => void] =>
    workspace.blocked
      ? ["Unblock", () => patch(workspace.id, { blocked: false })]
      : ["Block", () => setBlocked(workspace)];
  return (
    <SearchedTable
      title="Workspaces"
      search={search}
      onSearch={onSearch}
      query={workspaces}
      problem={blocked === undefined ? changing.error : null}
      columns={[
        {
          head: "Name",
          phone: "title",
          cell: ({ id, name, owner_email: owner, organization_id: organization }) => (
            <>
              <Link to="/operator" search={{ group: "workspaces", id }}>
                <Name>{name}</Name>
              </Link>
              <span className={style.owner}>
                {owner ?? (organization === null ? "without an owner" : "organisation")}
              </span>
            </>
          ),
        },
        {
          head: "State",
          phone: "state",
          cell: ({ blocked }) => (
            <Status kind={blocked ? "bad" : "good"}>{blocked ? "blocked" : "open"}</Status>
          ),
        },
        {
          head: "Plan",
          offTablet: true,
          phone: "when",
          cell: ({ plan }) => plan,
        },
        {
          head: "Balance",
          phone: "figure",
          number: true,
          cell: ({ balance }) => usd(balance),
        },
        { head: "Used", number: true, offTablet: true, cell: ({ used }) => usd(used) },
        {
          head: "Actions",
          phone: "actions",
          cell: (workspace) => (
            <Actions>
              <Button look="plain" onClick={() => setGranted(workspace)}>
                Grant credits
              </Button>
              <RowMenu
                label={`Actions of ${callingOf(workspace)}`}
                actions={[
                  ["Change plan", () => setPlanned(workspace)],
                  ...(workspace.organization_id === null ? [] : [blockingOf(workspace)]),
                ]}
              />
            </Actions>
          ),
        },
      ]}
    >
      <Modal
        title="Grant credits"
        open={granted !== undefined}
        onClose={() => setGranted(undefined)}
      >
        {granted === undefined ? null : (
          <GrantForm workspace={granted} onDone={() => setGranted(undefined)} />
        )}
      </Modal>
      <Confirm
        title={`Block ${blocked?.name ?? ""}`}
        open={blocked !== undefined}
        onClose={() => setBlocked(undefined)}
        action="Block workspace"
        work={changing}
        onConfirm={() => blocked && patch(blocked.id, { blocked: true })}
      >
        <p>Requests with its keys fail at once, until it is unblocked.</p>
      </Confirm>
      <Modal title="Change plan" open={planned !== undefined} onClose={() => setPlanned(undefined)}>
        {planned === undefined ? null : (
          <PlanForm workspace={planned} onDone={() => setPlanned(undefined)} />
        )}
      </Modal>
    </SearchedTable>
  );
}
