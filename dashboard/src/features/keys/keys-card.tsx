import {
  type QueryKey,
  type UseQueryResult,
  useMutation,
  useQueryClient,
} from "@tanstack/react-query";
import { useState } from "react";
import type { List } from "../../lib/api.ts";
import { Card } from "../../ui/card.tsx";
import { Code } from "../../ui/copy.tsx";
import { Field, Input } from "../../ui/fields.tsx";
import { Form } from "../../ui/form.tsx";
import { Empty, Loaded } from "../../ui/loaded.tsx";
import { Name, Status } from "../../ui/values.tsx";
import { type Column, Table } from "../../ui/table.tsx";
import style from "../../ui/ui.module.css";

/** A key that belongs to a part of the workspace. */
interface OwnKey {
  id: string;
  name: string;
  label: string;
  disabled: boolean;
}

/** The keys of a part of the workspace, and a form for another one, whose secret is shown once. */
export function KeysCard<Key extends OwnKey>({
  of,
  keys,
  empty,
  figures = [],
  onCreate,
  changes,
}: {
  /** What the keys belong to, in a word. */
  of: string;
  keys: UseQueryResult<List<Key>>;
  /** Says what having no key means. */
  empty: string;
  /** Columns beside name, secret and state. */
  figures?: readonly Column<Key>[];
  /** Makes a key of that name; absent where the person may not. */
  onCreate: ((name: string) => Promise<{ key: string }>) | undefined;
  /** What is read again once there is another key. */
  changes: QueryKey;
}) {
  const queries = useQueryClient();
  const [name, setName] = useState("");
  const create = useMutation({
    mutationFn: async () => onCreate?.(name),
    onSuccess: () => {
      setName("");
      return queries.invalidateQueries({ queryKey: changes });
    },
  });
  const secret = create.data?.key;
  const columns: readonly Column<Key>[] = [
    { head: "Name", phone: "title", cell: (key) => <Name>{key.name}</Name> },
    { head: "Key", phone: "when", cell: ({ label }) => <code>{label}</code> },
    ...figures,
    {
      head: "State",
      phone: "state",
      cell: ({ disabled }) => (
        <Status kind={disabled ? "warning" : "good"}>{disabled ? "disabled" : "active"}</Status>
      ),
    },
  ];
  return (
    <Card title="Keys" flush>
      <Loaded query={keys} height={64}>
        {({ data: rows }) =>
          rows.length === 0 ? (
            <Empty>{empty}</Empty>
          ) : (
            <Table
              rows={rows}
              rowKey={({ id }) => id}
              caption={`Keys of the ${of}`}
              columns={columns}
            />
          )
        }
      </Loaded>
      {onCreate === undefined ? null : (
        <div className={style.below}>
          {secret === undefined ? null : (
            <>
              <p>Copy the key now. It is not shown again.</p>
              <Code text={secret} label="Copy the key" />
            </>
          )}
          <Form
            inline
            look="plain"
            action="Create key"
            work={create}
            onSubmit={() => create.mutate()}
          >
            <Field param="name" label="Name of a new key">
              {(id) => (
                <Input
                  id={id}
                  required
                  value={name}
                  onChange={({ target }) => setName(target.value)}
                />
              )}
            </Field>
          </Form>
        </div>
      )}
    </Card>
  );
}
