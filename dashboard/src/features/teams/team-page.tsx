import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, getRouteApi, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { count, countOf, shortDay, usd } from "../../lib/format.ts";
import { useScope } from "../../lib/session.ts";
import { Button } from "../../ui/button.tsx";
import { Card, Stat, Stats } from "../../ui/card.tsx";
import { Field, Input } from "../../ui/fields.tsx";
import { Confirm, Form } from "../../ui/form.tsx";
import { Empty, Loaded, Problem } from "../../ui/loaded.tsx";
import { Moment, Name } from "../../ui/values.tsx";
import { Modal } from "../../ui/overlay.tsx";
import { PageHead } from "../../ui/page.tsx";
import { RowMenu } from "../../ui/row-menu.tsx";
import { Table } from "../../ui/table.tsx";
import style from "../../ui/ui.module.css";
import { KeysCard } from "../keys/keys-card.tsx";
import {
  addMember,
  createKey,
  deleteTeam,
  removeMember,
  type Team,
  teamKeysQuery,
  teamMembersQuery,
  teamQuery,
} from "./api.ts";
import { TeamForm } from "./team-form.tsx";
import { TeamSpending } from "./team-spending.tsx";

const route = getRouteApi("/teams/$id");

/** The people of a team, and a form for another one. */
function MembersCard({ id, mayWrite }: Pick<Team, "id"> & { mayWrite: boolean }) {
  const queries = useQueryClient();
  const members = useQuery(teamMembersQuery(id));
  const [email, setEmail] = useState("");
  const refresh = (): Promise<void> => queries.invalidateQueries({ queryKey: ["teams"] });
  const add = useMutation({
    meta: { done: "Member added" },
    mutationFn: addMember,
    onSuccess: () => {
      setEmail("");
      return refresh();
    },
  });
  const remove = useMutation({
    meta: { done: "Member removed" },
    mutationFn: removeMember,
    onSuccess: refresh,
  });
  return (
    <Card title="Members" flush>
      {remove.error === null ? null : <Problem error={remove.error} />}
      <Loaded query={members} height={64}>
        {({ data: rows }) =>
          rows.length === 0 ? (
            <Empty>No member yet. Its members see the team, and make keys of it.</Empty>
          ) : (
            <Table
              rows={rows}
              rowKey={({ user_id: userId }) => userId}
              caption="Members of the team"
              columns={[
                { head: "Name", phone: "title", cell: ({ name }) => <Name>{name}</Name> },
                { head: "E-mail", phone: "note", cell: (member) => <Name>{member.email}</Name> },
                {
                  head: "Joined",
                  phone: "when",
                  cell: ({ joined_at: at }) => <Moment at={at} dayOnly />,
                },
                {
                  head: "Actions",
                  phone: "actions",
                  cell: ({ user_id: userId, name }) =>
                    mayWrite ? (
                      <RowMenu
                        label={`Actions of ${name}`}
                        actions={[["Take out of the team", () => remove.mutate({ id, userId })]]}
                      />
                    ) : null,
                },
              ]}
            />
          )
        }
      </Loaded>
      {mayWrite ? (
        <div className={style.below}>
          <Form
            inline
            look="plain"
            action="Add member"
            work={add}
            onSubmit={() => add.mutate({ id, email })}
          >
            <Field param="email" label="E-mail of a person of the organisation">
              {(field) => (
                <Input
                  id={field}
                  type="email"
                  required
                  value={email}
                  onChange={({ target }) => setEmail(target.value)}
                />
              )}
            </Field>
          </Form>
        </div>
      ) : null}
    </Card>
  );
}

/** Changes a team, or deletes it. */
function Change({ team }: { team: Team }) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [isEdited, setEdited] = useState(false);
  const [isDoomed, setDoomed] = useState(false);
  const refresh = (): Promise<void> => queries.invalidateQueries({ queryKey: ["teams"] });
  const remove = useMutation({
    meta: { done: "Team deleted" },
    mutationFn: () => deleteTeam({ id: team.id, keys: "delete" }),
    onSuccess: async () => {
      await navigate({ to: "/teams" });
      await refresh();
    },
  });
  return (
    <>
      <Button onClick={() => setEdited(true)}>Edit team</Button>
      <Button look="plain" onClick={() => setDoomed(true)}>
        Delete
      </Button>
      <Modal title="Edit team" open={isEdited} onClose={() => setEdited(false)}>
        <TeamForm
          team={team}
          onDone={() => {
            setEdited(false);
            void refresh();
          }}
        />
      </Modal>
      <Confirm
        title={`Delete ${team.name}`}
        open={isDoomed}
        onClose={() => setDoomed(false)}
        onConfirm={() => remove.mutate()}
        action="Delete team"
        work={remove}
      >
        <p>
          {team.keys === 0
            ? "It has no key."
            : `Requests with its ${team.keys === 1 ? "key" : countOf(team.keys, "key")} fail at once.`}{" "}
          Records of its requests stay.
        </p>
      </Confirm>
    </>
  );
}

/** What the keys of a team spent, what is left, and what they may ask for. */
function Figures({ team }: { team: Team }) {
  const { spent, limit, remaining, period, time_zone: zone, allowed_models: models } = team;
  return (
    <Stats>
      <Stat
        name="Spent"
        value={usd(spent)}
        note={limit === null ? "no limit" : <TeamSpending {...team} />}
      />
      <Stat
        name="Left"
        value={remaining === null ? "no limit" : usd(remaining)}
        note={
          period === "total"
            ? "for all time"
            : `${period}, since ${shortDay(team.period_start, zone)} (${zone})`
        }
      />
      <Stat name="Members" value={count(team.members)} />
      <Stat name="Keys" value={count(team.keys)} />
      <Stat
        name="Models"
        value={models === null ? "all" : count(models.length)}
        note={models?.join(", ") ?? ""}
      />
    </Stats>
  );
}

/** One team: what its keys spent of its limit, its people and its keys. */
export function TeamPage() {
  const { id } = route.useParams();
  const team = useQuery(teamQuery(id));
  const keys = useQuery(teamKeysQuery(id));
  const mayChange = useScope("write:security");
  const mayWrite = useScope("write:llm-keys");
  return (
    <>
      <PageHead title={team.data?.name ?? "Team"} within={<Link to="/teams">Teams</Link>}>
        {mayChange && team.data !== undefined ? <Change team={team.data} /> : null}
      </PageHead>
      <Loaded query={team} height={88}>
        {(data) => <Figures team={data} />}
      </Loaded>
      <KeysCard
        of="team"
        keys={keys}
        empty="No key yet. What its keys spend counts towards the limit of the team."
        figures={[
          {
            head: "Spent in 30 days",
            number: true,
            phone: "figure",
            cell: ({ id: key, real_usage_monthly: spent }) => (
              <Link to="/activity" search={{ key_id: key }}>
                {usd(spent)}
              </Link>
            ),
          },
        ]}
        onCreate={mayWrite ? (name) => createKey({ id, name }) : undefined}
        changes={["teams"]}
      />
      <MembersCard id={id} mayWrite={mayChange} />
    </>
  );
}
