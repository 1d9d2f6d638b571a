import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
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
  const add = useMutation({ mutationFn: addMember, onSuccess: refresh });
  const remove = useMutation({ mutationFn: removeMember, onSuccess: refresh });
  return (
    <Card title="Members">
      {remove.error === null ? null : <Problem error={remove.error} />}
      <Loaded query={members} height={64}>
        {({ data: rows }) =>
          rows.length === 0 ? (
            <Empty>No member yet.</Empty>
          ) : (
            <Table
              rows={rows}
              rowKey={({ user_id: userId }) => userId}
              caption="Members of the team"
              columns={[
                { head: "Name", cell: ({ name }) => <Name>{name}</Name> },
                { head: "Address", cell: (member) => <Name>{member.email}</Name> },
                { head: "Joined", cell: ({ joined_at: joinedAt }) => shortDay(joinedAt) },
                {
                  head: "",
                  cell: ({ user_id: userId, name }) =>
                    mayWrite ? (
                      <Button
                        look="plain"
                        aria-label={`Take ${name} out`}
                        onClick={() => remove.mutate({ id, userId })}
                      >
                        Take out
                      </Button>
                    ) : null,
                },
              ]}
            />
          )
        }
      </Loaded>
      {mayWrite ? (
        <Form action="Add member" work={add} onSubmit={() => add.mutate({ id, email })}>
          <Field label="Address of a person of the organisation">
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
      ) : null}
    </Card>
  );
}

/** The keys of a team, and a form for another one. */
function KeysCard({ id, mayWrite }: Pick<Team, "id"> & { mayWrite: boolean }) {
  const queries = useQueryClient();
  const keys = useQuery(teamKeysQuery(id));
  const [name, setName] = useState("");
  const create = useMutation({
    mutationFn: createKey,
    onSuccess: () => queries.invalidateQueries({ queryKey: ["teams"] }),
  });
  return (
    <Card title="Keys">
      <Loaded query={keys} height={64}>
        {({ data: rows }) =>
          rows.length === 0 ? (
            <Empty>No key yet.</Empty>
          ) : (
            <Table
              rows={rows}
              rowKey={(key) => key.id}
              caption="Keys of the team"
              columns={[
                { head: "Name", cell: (key) => <Name>{key.name}</Name> },
                { head: "Key", cell: ({ label }) => label },
                {
                  head: "Spent in 30 days",
                  number: true,
                  cell: ({ real_usage_monthly: spent }) => usd(spent),
                },
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

/** Changes a team, or deletes it. */
function Change({ team }: { team: Team }) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [isEdited, setEdited] = useState(false);
  const [isDoomed, setDoomed] = useState(false);
  const refresh = (): Promise<void> => queries.invalidateQueries({ queryKey: ["teams"] });
  const remove = useMutation({
    mutationFn: () => deleteTeam({ id: team.id, keys: "delete" }),
    onSuccess: async () => {
      await navigate({ to: "/teams" });
      await refresh();
    },
  });
  return (
    <Card title="Change">
      <Actions>
        <Button onClick={() => setEdited(true)}>Edit team</Button>
        <Button look="plain" onClick={() => setDoomed(true)}>
          Delete
        </Button>
      </Actions>
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
        <p>Its {count(team.keys)} keys are revoked. Records of its requests stay.</p>
      </Confirm>
    </Card>
  );
}

/** One team: what its keys spent of its limit, its people and its keys. */
export function TeamPage() {
  const { id } = route.useParams();
  const team = useQuery(teamQuery(id));
  const mayChange = useScope("write:security");
  const mayWrite = useScope("write:llm-keys");
  return (
    <>
      <PageHead title="Team" />
      <Loaded query={team} height={240}>
        {(data) => (
          <>
            <Stats>
              <Stat name="Name" value={data.name} />
              <Stat
                name="Spent"
                value={usd(data.spent)}
                note={data.limit === null ? "no limit" : <TeamSpending {...data} />}
              />
              <Stat
                name="Left"
                value={data.remaining === null ? "no bound" : usd(data.remaining)}
                note={`since ${shortDay(data.period_start)}`}
              />
              <Stat
                name="Models"
                value={data.allowed_models === null ? "all" : count(data.allowed_models.length)}
                note={data.allowed_models?.join(", ") ?? ""}
              />
            </Stats>
            {mayChange ? <Change team={data} /> : null}
            <MembersCard id={data.id} mayWrite={mayChange} />
            <KeysCard id={data.id} mayWrite={mayWrite} />
          </>
        )}
      </Loaded>
    </>
  );
}
