import { useState } from "react";
import { Button } from "../../ui/button.tsx";
import { Field, Input } from "../../ui/fields.tsx";
import { Form } from "../../ui/form.tsx";
import { Empty } from "../../ui/loaded.tsx";
import { Modal } from "../../ui/overlay.tsx";
import { Table } from "../../ui/table.tsx";
import { type SavedView, type ViewPage, useViews, viewsMax } from "./api.ts";

type Search = Readonly<Record<string, string | undefined>>;

/** The part of an address that a view keeps: what is set. */
const setOf = (search: Search): Record<string, string> =>
  Object.fromEntries(
    Object.entries(search).flatMap(([name, value]) =>
      value === undefined || name === "id" ? [] : [[name, value]],
    ),
  );

/** The filters of a page under names of the person's own, in every browser. */
export function SavedViews({
  page,
  search,
  onChoose,
}: {
  page: ViewPage;
  /** What the page is narrowed to now. */
  search: Search;
  onChoose: (search: Readonly<Record<string, string>>) => void;
}) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button look="plain" onClick={() => setOpen(true)}>
        Views
      </Button>
      <Modal title="Saved views" open={isOpen} onClose={() => setOpen(false)}>
        <Views
          page={page}
          search={search}
          onChoose={(chosen) => {
            setOpen(false);
            onChoose(chosen);
          }}
        />
      </Modal>
    </>
  );
}

function Views({ page, search, onChoose }: Parameters<typeof SavedViews>[0]) {
  const { views, keep } = useViews(page);
  const [name, setName] = useState("");
  const others = views.filter((view) => view.name !== name.trim());
  const save = (): void =>
    keep.mutate([...others, { name: name.trim(), search: setOf(search) }], {
      onSuccess: () => setName(""),
    });
  return (
    <>
      {views.length === 0 ? (
        <Empty>No view yet. Set filters, then save them here under a name.</Empty>
      ) : (
        <ViewTable
          views={views}
          onChoose={onChoose}
          onRemove={(removed) => keep.mutate(views.filter((view) => view.name !== removed))}
        />
      )}
      <Form
        action={others.length < views.length ? "Replace view" : "Save view"}
        work={keep}
        onSubmit={save}
        disabled={name.trim() === "" || others.length >= viewsMax}
      >
        <Field label="Name of the filters that are set now">
          {(id) => (
            <Input
              id={id}
              value={name}
              maxLength={60}
              onChange={(event) => setName(event.target.value)}
            />
          )}
        </Field>
      </Form>
    </>
  );
}

const ViewTable = ({
  views,
  onChoose,
  onRemove,
}: {
  views: readonly SavedView[];
  onChoose: (search: Readonly<Record<string, string>>) => void;
  onRemove: (name: string) => void;
}) => (
  <Table
    rows={views}
    rowKey={({ name }) => name}
    caption="Saved views"
    compact
    columns={[
      {
        head: "View",
        cell: ({ name, search }) => (
          <Button look="plain" onClick={() => onChoose(search)}>
            {name}
          </Button>
        ),
      },
      {
        head: "Remove",
        cell: ({ name }) => (
          <Button look="plain" aria-label={`Remove ${name}`} onClick={() => onRemove(name)}>
            Remove
          </Button>
        ),
      },
    ]}
  />
);
