import { sending } from "../../lib/api.ts";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { DownloadButton } from "../../ui/download-button.tsx";
import { count } from "../../lib/format.ts";
import { useScope } from "../../lib/session.ts";
import { Actions, Button } from "../../ui/button.tsx";
import { Facts } from "../../ui/card.tsx";
import { Field, Input, Select } from "../../ui/fields.tsx";
import { Confirm, Form } from "../../ui/form.tsx";
import { Empty, Loaded } from "../../ui/loaded.tsx";
import { LoadedPages } from "../../ui/list-pages.tsx";
import { Drawer } from "../../ui/overlay.tsx";
import { RowButton, Table } from "../../ui/table.tsx";
import {
  type Hub,
  hubItemsQuery,
  hubPath,
  hubQuery,
  hubsQuery,
  itemPath,
  nameOf,
  useChange,
  useMayChange,
  visibilities,
  visibilityOf,
} from "./api.ts";
import { EntryForm } from "./entry-form.tsx";
import { EntryShown } from "./entry-shown.tsx";

/** Makes a collection, or changes one. */
export function HubForm({ hub, onDone }: { hub?: Hub; onDone: (hub: Hub) => void }) {
  const [name, setName] = useState(hub?.name ?? "");
  const [description, setDescription] = useState(hub?.description ?? "");
  const [visibility, setVisibility] = useState(hub?.visibility ?? "workspace");
  const work = useChange();
  const body = {
    name,
    description: description.trim() || null,
    visibility: visibilityOf(visibility),
  };
  const request =
    hub === undefined
      ? { path: "/hubs", ...sending("POST /hubs", body) }
      : { path: hubPath(hub.slug), ...sending("PATCH /hubs/{slug}", body) };
  return (
    <Form
      action={hub === undefined ? "Create collection" : "Save collection"}
      work={work}
      onSubmit={() => work.mutate(request, { onSuccess: onDone })}
    >
      <Field param="name" label="Name">
        {(id) => (
          <Input
            id={id}
            required
            maxLength={200}
            value={name}
            onChange={(event) => setName(event.target.value)}
          />
        )}
      </Field>
      <Field label="About">
        {(id) => (
          <Input
            id={id}
            maxLength={2_000}
            value={description}
            onChange={(event) => setDescription(event.target.value)}
          />
        )}
      </Field>
      <Field label="Who sees it" hint="What it holds is seen by the same people.">
        {(id) => (
          <Select id={id} value={visibility} options={visibilities} onChange={setVisibility} />
        )}
      </Field>
    </Form>
  );
}

/** Copies a skill into a collection, from an address or another collection. */
function ImportForm({ path, onDone }: { path: string; onDone: () => void }) {
  const [source, setSource] = useState("");
  const work = useChange();
  return (
    <Form
      action="Import skill"
      work={work}
      onSubmit={() =>
        work.mutate(
          {
            path: `${path}/import`,
            ...sending("POST /hubs/{slug}/import", { source_ref: source }),
          },
          { onSuccess: onDone },
        )
      }
    >
      <Field
        label="Where the skill is"
        hint="The https address of a SKILL.md, a folder of a Git repository, or collection/entry of this service."
      >
        {(id) => (
          <Input
            id={id}
            required
            value={source}
            onChange={(event) => setSource(event.target.value)}
          />
        )}
      </Field>
    </Form>
  );
}

function Items({ slug, onOpen }: { slug: string; onOpen: (id: string) => void }) {
  const items = useInfiniteQuery(hubItemsQuery(slug));
  return (
    <LoadedPages query={items} height={240}>
      {(data) =>
        data.length === 0 ? (
          <Empty>It holds nothing yet.</Empty>
        ) : (
          <Table
            rows={data}
            rowKey={({ id }) => id}
            caption="Entries of the collection"
            columns={[
              {
                head: "Name",
                phone: "title",
                cell: (item) => (
                  <RowButton onClick={() => onOpen(item.id)}>{nameOf(item)}</RowButton>
                ),
              },
              { head: "Kind", phone: "when", cell: ({ object }) => object.replaceAll("_", " ") },
              { head: "About", phone: "note", cell: ({ description }) => description ?? "–" },
              { head: "Version", number: true, cell: ({ version }) => count(version) },
            ]}
          />
        )
      }
    </LoadedPages>
  );
}

type Task = "add" | "import" | "edit";

function HubShown({
  slug,
  onOpen,
  onGone,
}: {
  slug: string;
  onOpen: (id: string) => void;
  onGone: () => void;
}) {
  const hub = useQuery(hubQuery(slug));
  const mayWrite = useScope("write:hub");
  const mayChange = useMayChange();
  const [task, setTask] = useState<Task>();
  const [isDoomed, setDoomed] = useState(false);
  const removal = useChange();
  const path = hubPath(slug);
  const done = (): void => setTask(undefined);
  const begin = (next: Task, label: string) => (
    <Button
      look="plain"
      aria-expanded={task === next}
      onClick={() => setTask(task === next ? undefined : next)}
    >
      {label}
    </Button>
  );
  return (
    <Loaded query={hub} height={320}>
      {(shown) => (
        <>
          <h2>{shown.name}</h2>
          {shown.description === null ? null : <p>{shown.description}</p>}
          <Facts
            rows={[
              ["Slug", <code key="slug">{shown.slug}</code>],
              ["Seen by", shown.visibility],
              ["Entries", count(shown.item_count)],
            ]}
          />
          <Actions>
            {shown.owned && mayWrite ? begin("add", "Add an entry") : null}
            {shown.owned && mayWrite ? begin("import", "Import a skill") : null}
            {mayChange(shown) ? begin("edit", "Edit collection") : null}
            <DownloadButton path={`${path}/export`} name={`${slug}.zip`} label="Download" />
            {mayChange(shown) ? (
              <Button look="danger" onClick={() => setDoomed(true)}>
                Delete collection
              </Button>
            ) : null}
          </Actions>
          {task === "add" ? <EntryForm place={{ hub: path }} onDone={done} /> : null}
          {task === "import" ? <ImportForm path={path} onDone={done} /> : null}
          {task === "edit" ? <HubForm hub={shown} onDone={done} /> : null}
          <Items slug={slug} onOpen={onOpen} />
          <Confirm
            title={`Delete ${shown.name}`}
            open={isDoomed}
            onClose={() => setDoomed(false)}
            action="Delete collection"
            work={removal}
            typed={shown.slug}
            onConfirm={() => removal.mutate({ method: "DELETE", path }, { onSuccess: onGone })}
          >
            <p>Its entries and their versions go with it.</p>
          </Confirm>
        </>
      )}
    </Loaded>
  );
}

/** Which collection and which of its entries are open. */
export interface Opened {
  id?: string | undefined;
  item?: string | undefined;
}

/** Collections, each with the knowledge, prompts, skills and plugins that it holds. */
export function Collections({
  scope,
  search,
  opened: { id, item },
  onOpen,
}: {
  scope: string;
  search: string | undefined;
  opened: Opened;
  onOpen: (opened: Opened) => void;
}) {
  const hubs = useInfiniteQuery(
    hubsQuery({ scope: scope === "public" ? scope : "workspace", search }),
  );
  return (
    <>
      <LoadedPages query={hubs} height={320}>
        {(data) =>
          data.length === 0 ? (
            <Empty>{search === undefined ? "No collection yet." : "Nothing matches."}</Empty>
          ) : (
            <Table
              rows={data}
              rowKey={({ slug }) => slug}
              caption="Collections"
              columns={[
                {
                  head: "Name",
                  phone: "title",
                  cell: ({ slug, name }) => (
                    <RowButton onClick={() => onOpen({ id: slug })}>{name}</RowButton>
                  ),
                },
                { head: "About", phone: "note", cell: ({ description }) => description ?? "–" },
                {
                  head: "Seen by",
                  phone: "when",
                  lead: "seen by",
                  cell: ({ visibility }) => visibility,
                },
                { head: "Entries", number: true, cell: ({ item_count: held }) => count(held) },
              ]}
            />
          )
        }
      </LoadedPages>
      <Drawer
        title={item === undefined ? "Collection" : "Entry"}
        open={id !== undefined}
        onClose={() => onOpen({})}
      >
        {id === undefined ? null : item === undefined ? (
          <HubShown
            slug={id}
            onOpen={(chosen) => onOpen({ id, item: chosen })}
            onGone={() => onOpen({})}
          />
        ) : (
          <>
            <Actions>
              <Button look="plain" onClick={() => onOpen({ id })}>
                Back to the collection
              </Button>
            </Actions>
            <EntryShown path={itemPath(id, item)} onGone={() => onOpen({ id })} />
          </>
        )}
      </Drawer>
    </>
  );
}
