import { queryOptions, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { Row } from "../../lib/api-types.ts";
import { useScope, useSession } from "../../lib/session.ts";
import { type List, request, sending } from "../../lib/api.ts";
import { Actions, Button } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { Code } from "../../ui/copy.tsx";
import { Check, Field, Input, Select } from "../../ui/fields.tsx";
import { Confirm, Form } from "../../ui/form.tsx";
import { Empty, Loaded } from "../../ui/loaded.tsx";
import { Moment, Name } from "../../ui/values.tsx";
import { Modal } from "../../ui/overlay.tsx";
import { type Scope, isScope, wordsOf } from "../../lib/scope-words.ts";
import { Table } from "../../ui/table.tsx";
import style from "../../ui/ui.module.css";

type ManagementKey = Row<"GET /management-keys">;

const keysQuery = queryOptions({
  queryKey: ["management-keys"],
  queryFn: () => request<List<ManagementKey>>("/management-keys"),
});
const lives = [
  ["", "never"],
  ["30", "in 30 days"],
  ["90", "in 90 days"],
  ["365", "in a year"],
] as const;
const dayMs = 86_400_000;

function NewKey({ onMade }: { onMade: (secret: string) => void }) {
  const { data: session } = useSession();
  const [name, setName] = useState("");
  const [days, setDays] = useState("90");
  const [chosen, setChosen] = useState<readonly Scope[]>([]);
  const create = useMutation({
    mutationFn: () =>
      request<{ key: string }>(
        "/management-keys",
        sending("POST /management-keys", {
          name,
          scopes: chosen,
          expires_at:
            days === "" ? null : new Date(Date.now() + Number(days) * dayMs).toISOString(),
        }),
      ),
    onSuccess: ({ key }) => onMade(key),
  });
  const turn = (scope: Scope, isOn: boolean): void =>
    setChosen(isOn ? [...chosen, scope] : chosen.filter((other) => other !== scope));
  return (
    <Form
      action="Create management key"
      work={create}
      onSubmit={() => create.mutate()}
      disabled={chosen.length === 0}
    >
      <Field param="name" label="Name">
        {(id) => (
          <Input
            id={id}
            value={name}
            required
            maxLength={200}
            onChange={(event) => setName(event.target.value)}
          />
        )}
      </Field>
      <Field label="Expires">
        {(id) => <Select id={id} value={days} options={lives} onChange={setDays} />}
      </Field>
      <fieldset className={style.fieldset}>
        <legend>It can</legend>
        {(session?.scopes ?? []).filter(isScope).map((scope) => (
          <Check
            key={scope}
            label={wordsOf(scope)}
            checked={chosen.includes(scope)}
            onChange={(isOn) => turn(scope, isOn)}
          />
        ))}
      </fieldset>
    </Form>
  );
}

/** Keys that programs administer the workspace with: what each may do, and how to revoke it. */
export function ManagementKeysCard() {
  const mayWrite = useScope("write:management-keys");
  const queries = useQueryClient();
  const keys = useQuery(keysQuery);
  const [isMaking, setMaking] = useState(false);
  const [secret, setSecret] = useState<string>();
  const [doomed, setDoomed] = useState<ManagementKey>();
  const [reason, setReason] = useState("");
  const refresh = (): Promise<void> => queries.invalidateQueries({ queryKey: ["management-keys"] });
  const revoke = useMutation({
    meta: { done: "Management key revoked" },
    mutationFn: (id: string) =>
      request(
        `/management-keys/${id}`,
        sending("DELETE /management-keys/{id}", {
          revocation_reason: reason === "" ? null : reason,
        }),
      ),
    onSuccess: () => {
      setDoomed(undefined);
      return refresh();
    },
  });
  const made = (key: string): void => {
    setMaking(false);
    setSecret(key);
    void refresh();
  };
  return (
    <Card
      title="Management keys"
      flush
      actions={
        mayWrite ? (
          <Button look="plain" onClick={() => setMaking(true)}>
            Create management key
          </Button>
        ) : null
      }
    >
      <Loaded query={keys} height={96}>
        {({ data: rows }) =>
          rows.length === 0 ? (
            <Empty>
              No management key. Programs administer the workspace with one, by the API.
            </Empty>
          ) : (
            <Table
              rows={rows}
              rowKey={({ id }) => id}
              caption="Management keys"
              columns={[
                {
                  head: "Name",
                  phone: "title",
                  cell: ({ name, label }) => (
                    <>
                      <Name>{name}</Name>
                      <code>{label}</code>
                    </>
                  ),
                },
                {
                  head: "Can",
                  phone: "note",
                  cell: ({ scopes }) => scopes.map(wordsOf).join(", "),
                },
                {
                  head: "Last used",
                  phone: "when",
                  cell: ({ last_used_at: at }) => <Moment at={at} never="never" dayOnly />,
                },
                {
                  head: "Expires",
                  cell: ({ expires_at: at }) => <Moment at={at} never="never" dayOnly />,
                },
                {
                  head: "Actions",
                  phone: "actions",
                  cell: (key) =>
                    mayWrite ? (
                      <Button look="plain" onClick={() => setDoomed(key)}>
                        Revoke
                      </Button>
                    ) : null,
                },
              ]}
            />
          )
        }
      </Loaded>
      <Modal title="Create management key" open={isMaking} onClose={() => setMaking(false)}>
        <NewKey onMade={made} />
      </Modal>
      <Modal
        title="Your management key"
        open={secret !== undefined}
        onClose={() => setSecret(undefined)}
        keepOpen
      >
        <p>Copy the key now. It is not shown again.</p>
        <Code text={secret ?? ""} label="Copy key" />
        <Actions>
          <Button onClick={() => setSecret(undefined)}>I have copied it</Button>
        </Actions>
      </Modal>
      <Confirm
        title={`Revoke ${doomed?.name ?? ""}`}
        open={doomed !== undefined}
        onClose={() => setDoomed(undefined)}
        action="Revoke key"
        work={revoke}
        onConfirm={() => doomed && revoke.mutate(doomed.id)}
      >
        <p>Requests with it fail at once.</p>
        <Field label="Reason">
          {(id) => (
            <Input
              id={id}
              value={reason}
              maxLength={500}
              onChange={(event) => setReason(event.target.value)}
            />
          )}
        </Field>
      </Confirm>
    </Card>
  );
}
