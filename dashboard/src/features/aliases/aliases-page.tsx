import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useScope } from "../../lib/session.ts";
import { Button } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { Confirm } from "../../ui/form.tsx";
import { Empty } from "../../ui/loaded.tsx";
import { LoadedPages } from "../../ui/list-pages.tsx";
import { Moment, Name } from "../../ui/values.tsx";
import { Modal } from "../../ui/overlay.tsx";
import { PageHead } from "../../ui/page.tsx";
import { RowMenu } from "../../ui/row-menu.tsx";
import { type Column, Table } from "../../ui/table.tsx";
import { AliasForm } from "./alias-form.tsx";
import { type Alias, aliasPagesQuery, deleteAlias } from "./api.ts";
import { Meaning } from "./meaning.tsx";

/** What is done: an alias is made, changed or deleted. */
type Act = { act: "create" } | { act: "edit" | "delete"; alias: Alias };

const facts: readonly Column<Alias>[] = [
  {
    head: "Name",
    phone: "title",
    cell: ({ name, description }) => (
      <>
        <code>{name}</code>
        {description === null ? null : <Name>{description}</Name>}
      </>
    ),
  },
  { head: "Means", phone: "note", cell: ({ target }) => <Meaning target={target} /> },
  {
    head: "Changed",
    phone: "when",
    lead: "changed",
    cell: ({ updated_at: at }) => <Moment at={at} dayOnly />,
  },
];

const actions = (onAct: (act: Act) => void): Column<Alias> => ({
  head: "Actions",
  phone: "actions",
  cell: (alias) => (
    <RowMenu
      label={`Actions of ${alias.name}`}
      actions={[
        ["Edit", () => onAct({ act: "edit", alias })],
        ["Delete", () => onAct({ act: "delete", alias })],
      ]}
    />
  ),
});

/** Aliases of the workspace: names that requests send in place of a model's id. */
export function AliasesPage() {
  const mayWrite = useScope("write:presets");
  const queries = useQueryClient();
  const aliases = useInfiniteQuery(aliasPagesQuery);
  const [chosen, setChosen] = useState<Act>();
  const close = (): void => setChosen(undefined);
  const done = (): void => {
    close();
    // Lists of models have the names too.
    for (const queryKey of [["aliases"], ["models"]]) void queries.invalidateQueries({ queryKey });
  };
  const remove = useMutation({
    meta: { done: "Alias deleted" },
    mutationFn: deleteAlias,
    onSuccess: done,
  });
  const create = mayWrite ? (
    <Button onClick={() => setChosen({ act: "create" })}>Create alias</Button>
  ) : null;
  const isDeleting = chosen?.act === "delete";
  const opened = chosen === undefined || chosen.act === "create" ? undefined : chosen.alias;
  return (
    <>
      <PageHead title="Aliases">{create}</PageHead>
      <Card flush>
        <LoadedPages query={aliases} height={240}>
          {(rows) =>
            rows.length === 0 ? (
              <Empty action={create}>
                No alias yet. An alias is a name that programs send as the model, so that you change
                the model in one place.
              </Empty>
            ) : (
              <Table
                rows={rows}
                rowKey={({ name }) => name}
                caption="Aliases"
                columns={mayWrite ? [...facts, actions(setChosen)] : facts}
              />
            )
          }
        </LoadedPages>
      </Card>
      <Modal
        title={opened?.name ?? "Create alias"}
        open={chosen !== undefined && !isDeleting}
        onClose={close}
      >
        <AliasForm alias={opened} onDone={done} />
      </Modal>
      <Confirm
        title={`Delete ${opened?.name ?? ""}`}
        open={isDeleting}
        onClose={close}
        action="Delete alias"
        work={remove}
        onConfirm={() => opened && remove.mutate(opened)}
      >
        <p>Requests with this name fail at once, unless the operator has the same name.</p>
      </Confirm>
    </>
  );
}
