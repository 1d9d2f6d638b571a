import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { deviceOf } from "../../lib/device.ts";
import { count, countOf, usd } from "../../lib/format.ts";
import { Card, Facts } from "../../ui/card.tsx";
import { Id } from "../../ui/copy.tsx";
import { Empty, Loaded } from "../../ui/loaded.tsx";
import { Moment, Status } from "../../ui/values.tsx";
import { Table } from "../../ui/table.tsx";
import { type PersonDetails, personQuery, workspaceQuery } from "./api.ts";
import { UsageCard } from "./usage-card.tsx";

const Back = ({ group, label }: { group: string; label: string }) => (
  <Link to="/operator" search={{ group }}>
    ← {label}
  </Link>
);

const stateOf = (blocked: boolean) => (
  <Status kind={blocked ? "bad" : "good"}>{blocked ? "blocked" : "open"}</Status>
);

/** One workspace: what it is, what it has left, and what it is used for. */
export function WorkspacePage({ id }: { id: string }) {
  const workspace = useQuery(workspaceQuery(id));
  return (
    <>
      <Back group="workspaces" label="All workspaces" />
      <Loaded query={workspace} height={160}>
        {(read) => (
          <Card title={read.name}>
            <Facts
              rows={[
                ["State", stateOf(read.blocked)],
                ["Plan", read.plan],
                ["Monthly credits left", usd(read.monthly_balance)],
                ["Top-ups left", usd(read.topup_balance)],
                ["Spent in all", usd(read.used)],
                ["Members", count(read.members)],
                ["Keys", count(read.llm_keys)],
                ["Management keys", count(read.management_keys)],
                ["Made", <Moment key="made" at={read.created_at} />],
                ["Id", <Id key="id">{read.id}</Id>],
                ...(read.owner_user_id === null
                  ? []
                  : [
                      [
                        "Owner",
                        <Link
                          key="owner"
                          to="/operator"
                          search={{ group: "people", id: read.owner_user_id }}
                        >
                          {read.owner_email ?? read.owner_user_id}
                        </Link>,
                      ] as const,
                    ]),
              ]}
            />
          </Card>
        )}
      </Loaded>
      <UsageCard kind="workspaces" id={id} />
    </>
  );
}

const waysOf = ({ password, passkeys, providers }: PersonDetails["sign_in"]): string =>
  [
    ...(password ? ["password"] : []),
    ...(passkeys > 0 ? [countOf(passkeys, "passkey")] : []),
    ...providers,
  ].join(", ") || "none";

const Organizations = ({ rows }: { rows: PersonDetails["organizations"] }) => (
  <Card title="Organisations" flush>
    {rows.length === 0 ? (
      <Empty>In no organisation.</Empty>
    ) : (
      <Table
        rows={rows}
        rowKey={({ id }) => id}
        caption="Organisations"
        columns={[
          {
            head: "Organisation",
            phone: "title",
            cell: ({ name, workspace_id: workspaceId }) => (
              <Link to="/operator" search={{ group: "workspaces", id: workspaceId }}>
                {name}
              </Link>
            ),
          },
          { head: "Role", phone: "figure", cell: ({ role }) => role },
        ]}
      />
    )}
  </Card>
);

/** One person: who it is, where from they work, and what their keys are used for. */
export function PersonPage({ id }: { id: string }) {
  const person = useQuery(personQuery(id));
  return (
    <>
      <Back group="people" label="All people" />
      <Loaded query={person} height={240}>
        {(read) => (
          <>
            <Card title={read.name}>
              <Facts
                rows={[
                  ["E-mail", read.email],
                  ["State", stateOf(read.blocked)],
                  ["Operator", read.operator ? "yes" : "no"],
                  ["Signs in with", waysOf(read.sign_in)],
                  ["Last signed in", <Moment key="in" at={read.last_signed_in_at} never="never" />],
                  ["Since", <Moment key="since" at={read.created_at} />],
                  [
                    "Sessions",
                    read.sessions.map(({ user_agent: agent }) => deviceOf(agent)).join(", ") ||
                      "none",
                  ],
                  ["Id", <Id key="id">{read.id}</Id>],
                ]}
              />
            </Card>
            <Organizations rows={read.organizations} />
          </>
        )}
      </Loaded>
      <UsageCard kind="users" id={id} />
    </>
  );
}
