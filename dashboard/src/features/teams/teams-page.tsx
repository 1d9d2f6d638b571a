import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { count } from "../../lib/format.ts";
import { useScope } from "../../lib/session.ts";
import { Modal } from "../../ui/overlay.tsx";
import { PageHead } from "../../ui/page.tsx";
import { Button } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { Empty, Loaded } from "../../ui/loaded.tsx";
import { Name } from "../../ui/values.tsx";
import { Table } from "../../ui/table.tsx";
import { type Team, teamsQuery } from "./api.ts";
import { TeamForm } from "./team-form.tsx";
import { TeamSpending } from "./team-spending.tsx";

const columns = [
  {
    head: "Name",
    phone: "title" as const,
    cell: ({ id, name }: Team) => (
      <Link to="/teams/$id" params={{ id }}>
        <Name>{name}</Name>
      </Link>
    ),
  },
  { head: "Spent", phone: "figure" as const, cell: (team: Team) => <TeamSpending {...team} /> },
  {
    head: "Period",
    cell: ({ limit, period }: Team) =>
      limit === null ? "–" : period === "total" ? "all time" : period,
  },
  { head: "Members", number: true, cell: ({ members }: Team) => count(members) },
  { head: "Keys", number: true, cell: ({ keys }: Team) => count(keys) },
  {
    head: "Models",
    phone: "when" as const,
    cell: ({ allowed_models: models }: Team) =>
      models === null ? "all models" : <Name>{models.join(", ")}</Name>,
  },
];

/** The teams of the workspace: what each spent of its limit, its people and its keys. */
export function TeamsPage() {
  const mayWrite = useScope("write:security");
  const queries = useQueryClient();
  const teams = useQuery(teamsQuery);
  const [isNew, setNew] = useState(false);
  const create = mayWrite ? <Button onClick={() => setNew(true)}>Create team</Button> : null;
  return (
    <>
      <PageHead title="Teams">{create}</PageHead>
      <Card flush>
        <Loaded query={teams} height={240}>
          {({ data: rows }) =>
            rows.length === 0 ? (
              <Empty action={create}>
                No team yet. A team is a part of the workspace with keys, members, models and a
                limit of its own: at the limit its keys are refused, and the others go on.
              </Empty>
            ) : (
              <Table rows={rows} rowKey={({ id }) => id} caption="Teams" columns={columns} />
            )
          }
        </Loaded>
      </Card>
      <Modal title="Create team" open={isNew} onClose={() => setNew(false)}>
        <TeamForm
          onDone={() => {
            setNew(false);
            void queries.invalidateQueries({ queryKey: ["teams"] });
          }}
        />
      </Modal>
    </>
  );
}
