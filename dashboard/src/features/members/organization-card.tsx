import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useLeaveWorkspace, useSession } from "../../lib/session.ts";
import { Button } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { Check, Field, Input, Select } from "../../ui/fields.tsx";
import { Confirm, Form } from "../../ui/form.tsx";
import { LoadedPages, Problem } from "../../ui/loaded.tsx";
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

/** One organisation: who is in it, as what, and who is invited. */
export function OrganizationCard({ organization }: { organization: Organization }) {
  const { id, name, role: own } = organization;
  const members = useInfiniteQuery(membersQuery(id));
  const queries = useQueryClient();
  const { data: session } = useSession();
  const [leaver, setLeaver] = useState<Member>();
  const [transfer, setTransfer] = useState<Member>();
  const refresh = (): Promise<void> => queries.invalidateQueries({ queryKey: ["organizations"] });
  const change = useMutation({
    meta: { done: "Role changed" },
    mutationFn: changeRole,
    onSuccess: refresh,
  });
  const makeOwner = useMutation({
    meta: { done: "Role changed" },
    mutationFn: changeRole,
    onSuccess: () => {
      setTransfer(undefined);
      return refresh();
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
        onChange={(role) =>
          role === "owner"
            ? setTransfer(member)
            : change.mutate({ id, user: member.user_id, role: role as Role })
        }
      />
    );
  return (
    <>
      <Card title={name} flush>
        {change.error === null ? null : <Problem error={change.error} />}
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
        title={`Make ${transfer?.name ?? ""} an owner`}
        open={transfer !== undefined}
        onClose={() => setTransfer(undefined)}
        action="Make owner"
        work={makeOwner}
        onConfirm={() =>
          transfer && makeOwner.mutate({ id, user: transfer.user_id, role: "owner" })
        }
      >
        <p>
          Owners may do everything, also remove you and delete the organisation. To hand it over,
          make yourself an admin or leave afterwards.
        </p>
      </Confirm>
    </>
  );
}
