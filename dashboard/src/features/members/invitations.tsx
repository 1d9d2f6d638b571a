import { zoneName } from "../../lib/time.ts";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Button } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { Code } from "../../ui/copy.tsx";
import { Field, Input, Select } from "../../ui/fields.tsx";
import { Form } from "../../ui/form.tsx";
import { Empty, Loaded, Problem } from "../../ui/loaded.tsx";
import { Moment } from "../../ui/values.tsx";
import { Table } from "../../ui/table.tsx";
import style from "../../ui/ui.module.css";
import { type Organization, type Role, invitationsQuery, invite, revokeInvitation } from "./api.ts";

/** Returns the roles that a member with this role may assign: only owners assign owner. */
export const rolesFor = (own: Role): readonly (readonly [string, string])[] => [
  ["member", "Member: uses keys and presets"],
  ["admin", "Admin: manages people and keys"],
  ...(own === "owner" ? [["owner", "Owner: everything"] as const] : []),
];

/** Invites people by a link, and lists the invitations that are open. */
export function Invitations({
  organization: { id, name, role: own },
}: {
  organization: Organization;
}) {
  const queries = useQueryClient();
  const invitations = useQuery(invitationsQuery(id));
  const [email, setEmail] = useState("");
  const [role, setRole] = useState<string>("member");
  const refresh = (): Promise<void> =>
    queries.invalidateQueries({ queryKey: ["organizations", id] });
  const send = useMutation({
    mutationFn: () => invite({ id, email, role: role as Role }),
    onSuccess: refresh,
  });
  const revoke = useMutation({
    meta: { done: "Invitation withdrawn" },
    mutationFn: revokeInvitation,
    onSuccess: refresh,
  });
  return (
    <Card title={`Invitations to ${name}`} flush>
      <div className={style.cardBody}>
        <Form action="Invite" work={send} onSubmit={() => send.mutate()}>
          <div className={style.grid}>
            <Field param="email" label="Invite by e-mail">
              {(id) => (
                <Input
                  id={id}
                  type="email"
                  value={email}
                  required
                  onChange={(event) => {
                    setEmail(event.target.value);
                    send.reset();
                  }}
                />
              )}
            </Field>
            <Field label="Role">
              {(id) => <Select id={id} value={role} options={rolesFor(own)} onChange={setRole} />}
            </Field>
          </div>
          {send.data === undefined ? null : (
            <>
              <p role="status">
                {send.data.mail === "sent" ? `Mailed to ${email}.` : `Send this link to ${email}.`}{" "}
                It works once, within seven days.
              </p>
              <Code text={send.data.url} label="Copy link" />
            </>
          )}
        </Form>
      </div>
      {revoke.error === null ? null : <Problem error={revoke.error} />}
      <Loaded query={invitations} height={64}>
        {({ data: rows }) =>
          rows.length === 0 ? (
            <Empty>No invitation is open.</Empty>
          ) : (
            <Table
              rows={rows}
              rowKey={({ id: invitation }) => invitation}
              caption="Invitations"
              columns={[
                { head: "E-mail", phone: "title", cell: ({ email: address }) => address },
                { head: "Role", phone: "figure", cell: ({ role: wanted }) => wanted },
                {
                  head: `Expires, ${zoneName()}`,
                  phone: "when",
                  cell: ({ expires_at: at }) => <Moment at={at} />,
                },
                {
                  head: "Actions",
                  phone: "actions",
                  cell: ({ id: invitation }) => (
                    <Button look="plain" onClick={() => revoke.mutate({ id, invitation })}>
                      Withdraw
                    </Button>
                  ),
                },
              ]}
            />
          )
        }
      </Loaded>
    </Card>
  );
}
