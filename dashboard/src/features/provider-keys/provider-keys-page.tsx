import { zoneName } from "../../lib/time.ts";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useScope } from "../../lib/session.ts";
import { PageHead } from "../../ui/page.tsx";
import { usd } from "../../lib/format.ts";
import { Button } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { Confirm } from "../../ui/form.tsx";
import { Empty, Loaded, Problem } from "../../ui/loaded.tsx";
import { Moment, Name, Status } from "../../ui/values.tsx";
import { Bar } from "../../ui/bar.tsx";
import { Modal } from "../../ui/overlay.tsx";
import { RowMenu } from "../../ui/row-menu.tsx";
import { Table } from "../../ui/table.tsx";
import { say } from "../../ui/toast.ts";
import style from "../../ui/ui.module.css";
import {
  type ProviderKey,
  changeProviderKey,
  deleteProviderKey,
  providerKeysQuery,
  testStoredKey,
} from "./api.ts";
import { Donation } from "./donation.tsx";
import { ProviderKeyForm, TestResult } from "./provider-key-form.tsx";

const kinds = {
  active: "good",
  disabled: undefined,
  refused: "bad",
  exhausted: "warning",
  paused: "warning",
} as const;
type Act = "edit" | "donate" | "delete";

/** The state of a key, with what the provider said where it refused the key. */
function State({
  stored: { status, status_reason: reason, last_used_at: used },
}: {
  stored: ProviderKey;
}) {
  if (status === "active" && used === null) return <Status>not used yet</Status>;
  return (
    <>
      <Status kind={kinds[status]}>{status}</Status>
      {status === "refused" ? (
        <div className={style.hint}>
          {reason ?? "The provider gave no reason."} Replace the key under Edit, or add funds at the
          provider, and test it.
        </div>
      ) : null}
    </>
  );
}

function Quota({ stored: { label, quota } }: { stored: ProviderKey }) {
  if (quota === null) return <>no quota</>;
  return (
    <>
      <div>
        {usd(quota.used)} of {usd(quota.limit)}
      </div>
      <Bar label={label} share={quota.limit === 0 ? 1 : quota.used / quota.limit} />
    </>
  );
}

/**
 * The workspace's own keys at providers: what they may be used for, whether they work, and which
 * are shared.
 */
export function ProviderKeysPage() {
  const mayWrite = useScope("write:byok");
  const queries = useQueryClient();
  const groups = useQuery(providerKeysQuery);
  const [isAdding, setAdding] = useState(false);
  const [chosen, setChosen] = useState<{ act: Act; stored: ProviderKey }>();
  const refresh = (): Promise<void> => queries.invalidateQueries({ queryKey: ["provider-keys"] });
  const done = (): void => {
    setAdding(false);
    setChosen(undefined);
    void refresh();
  };
  const test = useMutation({ mutationFn: testStoredKey, onSuccess: refresh });
  const change = useMutation({
    mutationFn: ({ id, enabled }: { id: string; enabled: boolean }) =>
      changeProviderKey({ id, enabled }),
    onSuccess: (_, { id, enabled }) => {
      say(enabled ? "Provider key enabled" : "Provider key disabled", () => turn(id, !enabled));
      return refresh();
    },
  });
  const turn = (id: string, enabled: boolean): void => change.mutate({ id, enabled });
  const remove = useMutation({
    meta: { done: "Provider key deleted" },
    mutationFn: deleteProviderKey,
    onSuccess: done,
  });
  const add = mayWrite ? <Button onClick={() => setAdding(true)}>Add provider key</Button> : null;
  const stored = chosen?.stored;
  const opens = (act: Act): boolean => chosen?.act === act;
  const actionsOf = (key: ProviderKey) =>
    mayWrite ? (
      <RowMenu
        label={`Actions of ${key.label}`}
        actions={[
          ["Test", () => test.mutate(key.id)],
          ["Edit", () => setChosen({ act: "edit", stored: key })],
          [key.enabled ? "Disable" : "Enable", () => turn(key.id, !key.enabled)],
          [
            key.donation === null ? "Donate" : "Donation",
            () => setChosen({ act: "donate", stored: key }),
          ],
          ["Delete", () => setChosen({ act: "delete", stored: key })],
        ]}
      />
    ) : null;
  return (
    <>
      <PageHead title="Provider keys">{add}</PageHead>
      {change.error === null ? null : <Problem error={change.error} />}
      <Loaded query={groups} height={240}>
        {({ data: rows }) =>
          rows.length === 0 ? (
            <Card>
              <Empty action={add}>
                No provider key yet. With your own key, requests for its provider's models cost no
                credits.
              </Empty>
            </Card>
          ) : (
            rows.map(({ provider_id: id, name, keys }) => (
              <Card key={id} title={name} flush>
                <Table
                  even
                  rows={keys}
                  rowKey={({ id: key }) => key}
                  caption={`Keys of ${name}`}
                  columns={[
                    {
                      head: "Label",
                      phone: "title",
                      cell: ({ label, key_preview: preview }) => (
                        <>
                          <Name>{label}</Name>
                          <code>{preview}</code>
                        </>
                      ),
                    },
                    {
                      head: "State",
                      phone: "state",
                      cell: (key) => <State stored={key} />,
                    },
                    { head: "Quota", phone: "figure", cell: (key) => <Quota stored={key} /> },
                    {
                      head: "Pool",
                      cell: ({ donation }) =>
                        donation === null
                          ? "own use only"
                          : donation.paused
                            ? "donated, paused"
                            : "donated",
                    },
                    {
                      head: `Last used, ${zoneName()}`,
                      phone: "when",
                      lead: "used",
                      cell: ({ last_used_at: at }) => <Moment at={at} never="never" />,
                    },
                    { head: "Actions", phone: "actions", cell: actionsOf },
                  ]}
                />
              </Card>
            ))
          )
        }
      </Loaded>
      <Modal title="Add provider key" open={isAdding} onClose={() => setAdding(false)}>
        <ProviderKeyForm onSaved={done} />
      </Modal>
      <Modal title={`Edit ${stored?.label ?? ""}`} open={opens("edit")} onClose={done}>
        <ProviderKeyForm stored={stored} onSaved={done} />
      </Modal>
      <Modal title={`Donation of ${stored?.label ?? ""}`} open={opens("donate")} onClose={done}>
        {stored === undefined ? null : <Donation stored={stored} onChanged={done} />}
      </Modal>
      <Modal
        title="Test of the key"
        open={test.data !== undefined || test.error !== null}
        onClose={() => test.reset()}
      >
        {test.data === undefined ? null : <TestResult result={test.data} />}
        {test.error === null ? null : <Problem error={test.error} />}
      </Modal>
      <Confirm
        title={`Delete ${stored?.label ?? ""}`}
        open={opens("delete")}
        onClose={done}
        action="Delete provider key"
        work={remove}
        onConfirm={() => stored && remove.mutate(stored.id)}
      >
        <p>
          Requests for its provider's models cost credits again, or fail where the service has no
          key. A donation ends with it.
        </p>
      </Confirm>
    </>
  );
}
