import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { useScope } from "../../app/session.ts";
import { PageHead } from "../../app/shell.tsx";
import { localTime, usd, utc } from "../../lib/format.ts";
import { Actions, Button, Card, Empty, Field, Input, Loaded, Problem, Select, Status } from "../../ui/parts.tsx";
import { Modal } from "../../ui/overlay.tsx";
import { Table } from "../../ui/table.tsx";
import { type Key, type MadeKey, changeKey, createKey, deleteKey, keysQuery, rotateKey } from "./api.ts";
import { SecretOnce } from "./secret-once.tsx";

const resets = [["monthly", "30 days, rolling"], ["weekly", "7 days, rolling"], ["daily", "24 hours, rolling"]] as const;
const lives = [["", "never"], ["1", "in 1 day"], ["30", "in 30 days"], ["90", "in 90 days"], ["365", "in a year"]] as const;
const dayMs = 86_400_000;

function NewKeyForm({ onMade }: { onMade: (made: MadeKey) => void }) {
  const [name, setName] = useState("");
  const [limit, setLimit] = useState("");
  const [reset, setReset] = useState("monthly");
  const [days, setDays] = useState("");
  const create = useMutation({ mutationFn: createKey, onSuccess: onMade });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    create.mutate({
      name, ...(limit === "" ? {} : { limit: Number(limit), limit_reset: reset }),
      ...(days === "" ? {} : { expires_at: new Date(Date.now() + Number(days) * dayMs).toISOString() }),
    });
  };
  return (
    <form onSubmit={submit}>
      <Field label="Name" hint="What you will know it by: an app, an agent, a person.">
        {(id) => <Input id={id} value={name} onChange={(event) => setName(event.target.value)} required maxLength={200} />}
      </Field>
      <Field label="Spending cap in USD" hint="Requests are refused beyond it. Empty means no cap.">
        {(id) => <Input id={id} type="number" min="0" step="any" value={limit} onChange={(event) => setLimit(event.target.value)} />}
      </Field>
      <Field label="The cap is for">{(id) => <Select id={id} value={reset} options={resets} onChange={setReset} />}</Field>
      <Field label="Ends">{(id) => <Select id={id} value={days} options={lives} onChange={setDays} />}</Field>
      {create.error === null ? null : <Problem error={create.error} />}
      <br />
      <Actions><Button type="submit" disabled={create.isPending}>Create key</Button></Actions>
    </form>
  );
}

const stateOf = ({ disabled, expires_at: end }: Key) => (disabled ? "disabled" : end !== null && Date.parse(end) <= Date.now() ? "expired" : "active");

/** Keys of the workspace: who spends what, and up to which cap. */
export function KeysPage() {
  const mayWrite = useScope("write:llm-keys");
  const queries = useQueryClient();
  const keys = useQuery(keysQuery);
  const [isMaking, setMaking] = useState(false);
  const [made, setMade] = useState<MadeKey>();
  const [doomed, setDoomed] = useState<Key>();
  const refresh = (): Promise<void> => queries.invalidateQueries({ queryKey: ["keys"] });
  const change = useMutation({ mutationFn: ({ hash, disabled }: { hash: string; disabled: boolean }) => changeKey(hash, { disabled }), onSuccess: refresh });
  const rotate = useMutation({ mutationFn: rotateKey, onSuccess: (result) => { setMade(result); return refresh(); } });
  const remove = useMutation({ mutationFn: deleteKey, onSuccess: () => { setDoomed(undefined); return refresh(); } });
  const failed = change.error ?? rotate.error ?? remove.error;
  const shown = (result: MadeKey): void => {
    setMaking(false);
    setMade(result);
    void refresh();
  };
  return (
    <>
      <PageHead title="Keys">{mayWrite ? <Button onClick={() => setMaking(true)}>Create key</Button> : null}</PageHead>
      {failed === null ? null : <Problem error={failed} />}
      <Card flush>
        <Loaded query={keys} height={320}>
          {({ data: rows }) => rows.length === 0 ? <Empty action={mayWrite ? <Button onClick={() => setMaking(true)}>Create key</Button> : undefined}>No key yet.</Empty> : (
            <Table rows={rows} rowKey={({ id }) => id} caption="Keys" columns={[
              { head: "Name", cell: ({ name, label }) => <><div>{name}</div><code>{label}</code></> },
              { head: "State", cell: (key) => <Status kind={stateOf(key) === "active" ? "good" : "warning"}>{stateOf(key)}</Status> },
              { head: "Cap", number: true, cell: ({ limit, limit_remaining: left }) => (limit === null ? "no cap" : `${usd(left)} of ${usd(limit)} left`) },
              { head: "30 days", number: true, cell: ({ real_usage_monthly: spent }) => usd(spent) },
              { head: "Last used", cell: ({ last_used_at: at }) => <span title={utc(at)}>{at === null ? "never" : localTime(at)}</span> },
              { head: "Ends", cell: ({ expires_at: at }) => <span title={utc(at)}>{at === null ? "never" : localTime(at)}</span> },
              { head: "Actions", cell: (key) => mayWrite ? (
                <Actions>
                  <Button look="plain" onClick={() => change.mutate({ hash: key.hash, disabled: !key.disabled })}>{key.disabled ? "Enable" : "Disable"}</Button>
                  <Button look="plain" onClick={() => rotate.mutate(key.hash)}>Rotate</Button>
                  <Button look="plain" onClick={() => setDoomed(key)}>Delete</Button>
                </Actions>
              ) : null },
            ]} />
          )}
        </Loaded>
      </Card>
      <Modal title="Create key" open={isMaking} onClose={() => setMaking(false)}><NewKeyForm onMade={shown} /></Modal>
      <Modal title="Your key" open={made !== undefined} onClose={() => setMade(undefined)}>{made === undefined ? null : <SecretOnce secret={made.key} />}</Modal>
      <Modal title={`Delete ${doomed?.name ?? ""}`} open={doomed !== undefined} onClose={() => setDoomed(undefined)}>
        <p>Requests with this key, and with keys that it made, fail at once. What it spent stays in the records.</p>
        <Actions><Button look="danger" disabled={remove.isPending} onClick={() => doomed && remove.mutate(doomed.hash)}>Delete key</Button></Actions>
      </Modal>
    </>
  );
}
