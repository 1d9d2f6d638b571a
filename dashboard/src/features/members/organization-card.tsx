import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useLeaveWorkspace, useSession } from "../../lib/session.ts";
import { Button } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { Check, Field, Input, Select } from "../../ui/fields.tsx";
import { Confirm, Form } from "../../ui/form.tsx";
import { LoadedPages } from "../../ui/list-pages.tsx";
import { Moment, Status } from "../../ui/values.tsx";
import { Table } from "../../ui/table.tsx";
import {
  type Member,
  type Organization,
  type Role,
  changeRole,
  deleteOrganization,
  membersQuery,
  removeMember,
  type RevokedKeys,
  renameOrganization,
} from "./api.ts";
import { RequiredFactor } from "./required-factor.tsx";
import { Invitations, rolesFor } from "./invitations.tsx";

const kept = [
  ["management", "their management keys end"],
  ["all", "all keys that they made end"],
  ["none", "no key ends"],
] as const;

function RemoveMember({
  organization,
  member,
  onClose,
}: {
  organization: Organization;
  member: Member | undefined;
  onClose: () => void;
}) {
  const queries = useQueryClient();
  const { data: session } = useSession();
  const leave = useLeaveWorkspace();
  const leaves = member?.user_id === session?.user.id;
  const [keys, setKeys] = useState<RevokedKeys>("management");
  const remove = useMutation({
    meta: { done: "Member removed" },
    mutationFn: () => removeMember({ id: organization.id, user: member?.user_id ?? "", keys }),
    onSuccess: () => {
      onClose();
      return leaves ? leave() : queries.invalidateQueries();
    },
  });
  return (
    <Confirm
      title={leaves ? `Leave ${organization.name}` : `Remove ${member?.name ?? ""}`}
      open={member !== undefined}
      onClose={onClose}
      action={leaves ? "Leave" : "Remove member"}
      work={remove}
      onConfirm={() => remove.mutate()}
    >
      <p>
        {leaves ? "You are" : `${member?.name} is`} out of {organization.name} with the next
        request. LLM keys belong to the organisation.
      </p>
      <Field label="Keys">
        {(id) => (
          <Select
            id={id}
            value={keys}
            options={leaves ? kept.slice(0, 2) : kept}
            onChange={setKeys}
          />
        )}
      </Field>
    </Confirm>
  );
}

function Settings({ organization: { id, name } }: { organization: Organization }) {
  const queries = useQueryClient();
  const [text, setText] = useState(name);
  const [isDoomed, setDoomed] = useState(false);
  const [givesUp, setGivesUp] = useState(false);
  const leave = useLeaveWorkspace();
  const rename = useMutation({
    meta: { done: "Organisation renamed" },
    mutationFn: renameOrganization,
    onSuccess: () => queries.invalidateQueries(),
  });
  const remove = useMutation({
    mutationFn: () => deleteOrganization({ id, confirm: givesUp }),
    onSuccess: () => {
      setDoomed(false);
      return leave();
    },
  });
  return (
    <Card title={`Settings of ${name}`}>
      <Form
        look="plain"
        action="Rename organisation"
        work={rename}
        onSubmit={() => rename.mutate({ id, name: text })}
        more={
          <Button look="plain" onClick={() => setDoomed(true)}>
            Delete organisation
          </Button>
        }
      >
        <Field param="name" label="Name of the organisation">
          {(field) => (
            <Input
              id={field}
              value={text}
              required
              maxLength={200}
              onChange={(event) => setText(event.target.value)}
            />
          )}
        </Field>
      </Form>
      <Confirm
        title={`Delete ${name}`}
        open={isDoomed}
        onClose={() => setDoomed(false)}
        action="Delete organisation"
        work={remove}
        typed={name}
        onConfirm={() => remove.mutate()}
      >
        <p>
          Members and invitations go with it. Its keys fail at once, and its credits are given up.
          Records stay.
        </p>
        <Check
          label="Give up what is left of the credits"
          checked={givesUp}
          onChange={setGivesUp}
        />
      </Confirm>
    </Card>
  );
}

/** What a member may do from now on, by the role. */
const effects: Readonly<Record<Role, string>> = {
  owner:
    "Owners may do everything, also remove you and delete the organisation. To hand it over, make yourself an admin or leave afterwards.",
  admin: "Admins invite and remove people, and manage the keys of everybody.",
  member: "Members use keys and presets, and manage neither people nor the keys of others.",
};

/** One organisation: who is in it, as what, and who is invited. */
export function OrganizationCard({ organization }: { organization: Organization }) {
  const { id, name, role: own } = organization;
  const members = useInfiniteQuery(membersQuery(id));
  const queries = useQueryClient();
  const { data: session } = useSession();
  const [leaver, setLeaver] = useState<Member>();
  const [chosen, setChosen] = useState<{ member: Member; role: Role }>();
  const change = useMutation({
    meta: { done: "Role changed" },
    mutationFn: changeRole,
    onSuccess: () => {
      setChosen(undefined);
      return queries.invalidateQueries({ queryKey: ["organizations"] });
    },
  });
  const manages = own !== "member";
  const roleOf = (member: Member) =>
    !manages || (member.role === "owner" && own !== "owner") ? (
      member.role
    ) : (
      <Select
        label={`Role of ${member.name}`}
        value={member.role}
        options={rolesFor(own)}
        onChange={(role) => setChosen({ member, role: role as Role })}
      />
    );
  return (
    <>
      <Card title={name} flush>
        <LoadedPages query={members} height={160}>
          {(rows) => (
            <Table
              rows={rows}
              rowKey={({ user_id: userId }) => userId}
              caption={`Members of ${name}`}
              columns={[
                {
                  head: "Name",
                  phone: "title",
                  cell: (member) => member.name,
                },
                { head: "E-mail", phone: "when", cell: ({ email }) => email },
                { head: "Role", phone: "note", cell: roleOf },
                {
                  head: "Second factor",
                  cell: ({ second_factor: has }) =>
                    has ? <Status kind="good">yes</Status> : <Status>no</Status>,
                },
                {
                  head: "Since",
                  cell: ({ joined_at: at }) => <Moment at={at} dayOnly />,
                },
                {
                  head: "Actions",
                  phone: "actions",
                  cell: (member) =>
                    member.user_id === session?.user.id ? (
                      <Button look="plain" onClick={() => setLeaver(member)}>
                        Leave
                      </Button>
                    ) : manages ? (
                      <Button look="plain" onClick={() => setLeaver(member)}>
                        Remove
                      </Button>
                    ) : null,
                },
              ]}
            />
          )}
        </LoadedPages>
      </Card>
      {manages ? <Invitations organization={organization} /> : null}
      {own === "owner" ? <RequiredFactor organization={organization} /> : null}
      {own === "owner" ? <Settings key={name} organization={organization} /> : null}
      <RemoveMember
        organization={organization}
        member={leaver}
        onClose={() => setLeaver(undefined)}
      />
      <Confirm
        title={`Make ${chosen?.member.name} ${chosen?.role === "member" ? "a" : "an"} ${chosen?.role}`}
        open={chosen !== undefined}
        onClose={() => setChosen(undefined)}
        action={`Make ${chosen?.role}`}
        work={change}
        onConfirm={() =>
          chosen && change.mutate({ id, user: chosen.member.user_id, role: chosen.role })
        }
      >
        <p>{chosen && effects[chosen.role]}</p>
      </Confirm>
    </>
  );
}
