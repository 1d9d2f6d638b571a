import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { PageHead } from "../../app/shell.tsx";
import { type List, request } from "../../lib/api.ts";
import { localTime } from "../../lib/format.ts";
import { Actions, Button, Card, Code, Empty, Field, Input, Loaded, Problem, Select } from "../../ui/parts.tsx";
import { Table } from "../../ui/table.tsx";

interface Organization {
  id: string;
  name: string;
  role: string;
  workspace_id: string;
}

interface Member {
  user_id: string;
  name: string;
  email: string;
  role: string;
  joined_at: string;
}

const roles = [["member", "Member"], ["admin", "Admin"], ["owner", "Owner"]] as const;

function Invite({ organizationId }: { organizationId: string }) {
  const [email, setEmail] = useState("");
  const [role, setRole] = useState("member");
  const invite = useMutation({
    mutationFn: () => request<{ url: string }>(`/organizations/${organizationId}/invitations`, { method: "POST", body: { email, role } }),
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    invite.mutate();
  };
  return (
    <form onSubmit={submit}>
      <Field label="Invite by e-mail">{(id) => <Input id={id} type="email" value={email} onChange={(event) => setEmail(event.target.value)} required />}</Field>
      <Field label="Role">{(id) => <Select id={id} value={role} options={roles} onChange={setRole} />}</Field>
      <br />
      <Actions><Button type="submit" disabled={invite.isPending}>Invite</Button></Actions>
      {invite.error === null ? null : <Problem error={invite.error} />}
      {invite.data === undefined ? null : <><p>Send this link to {email}. It works once, within seven days.</p><Code text={invite.data.url} /></>}
    </form>
  );
}

function OrganizationCard({ organization: { id, name, role } }: { organization: Organization }) {
  const members = useQuery({ queryKey: ["members", id], queryFn: () => request<List<Member>>(`/organizations/${id}/members`) });
  const queries = useQueryClient();
  const remove = useMutation({
    mutationFn: (userId: string) => request(`/organizations/${id}/members/${userId}`, { method: "DELETE" }),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["members", id] }),
  });
  const manages = role !== "member";
  return (
    <Card title={name} flush>
      {remove.error === null ? null : <Problem error={remove.error} />}
      <Loaded query={members} height={160}>
        {({ data: rows }) => (
          <Table rows={rows} rowKey={({ user_id: userId }) => userId} caption={`Members of ${name}`} columns={[
            { head: "Name", cell: (member) => member.name }, { head: "E-mail", cell: ({ email }) => email }, { head: "Role", cell: (member) => member.role },
            { head: "Since", cell: ({ joined_at: at }) => localTime(at) },
            { head: "Actions", cell: ({ user_id: userId }) => manages ? <Button look="plain" onClick={() => remove.mutate(userId)}>Remove</Button> : null },
          ]} />
        )}
      </Loaded>
      {manages ? <div style={{ padding: 16 }}><Invite organizationId={id} /></div> : null}
    </Card>
  );
}

/** The person's organisations, and who is in them. */
export function MembersPage() {
  const queries = useQueryClient();
  const organizations = useQuery({ queryKey: ["organizations"], queryFn: () => request<List<Organization>>("/organizations") });
  const [name, setName] = useState("");
  const create = useMutation({
    mutationFn: () => request("/organizations", { method: "POST", body: { name } }),
    onSuccess: () => { setName(""); return queries.invalidateQueries(); },
  });
  return (
    <>
      <PageHead title="Members" />
      <Loaded query={organizations} height={240}>
        {({ data: rows }) => rows.length === 0
          ? <Card><Empty>You are in no organisation. Make one to share keys, credits and budgets with others.</Empty></Card>
          : <>{rows.map((organization) => <OrganizationCard key={organization.id} organization={organization} />)}</>}
      </Loaded>
      <Card title="New organisation">
        <form onSubmit={(event) => { event.preventDefault(); create.mutate(); }}>
          <Field label="Name">{(id) => <Input id={id} value={name} onChange={(event) => setName(event.target.value)} required maxLength={200} />}</Field>
          <br />
          <Actions><Button type="submit" disabled={create.isPending}>Create organisation</Button></Actions>
          {create.error === null ? null : <Problem error={create.error} />}
        </form>
      </Card>
    </>
  );
}
