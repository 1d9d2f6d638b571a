import { zoneName } from "../../../lib/time.ts";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { download } from "../../../lib/download.ts";
import { countOf } from "../../../lib/format.ts";
import { Button } from "../../../ui/button.tsx";
import { Card } from "../../../ui/card.tsx";
import { Confirm } from "../../../ui/form.tsx";
import { Empty, Loaded, Problem } from "../../../ui/loaded.tsx";
import { Moment, Status } from "../../../ui/values.tsx";
import { Drawer, Modal } from "../../../ui/overlay.tsx";
import { RowMenu } from "../../../ui/row-menu.tsx";
import { Table } from "../../../ui/table.tsx";
import type { AliasTarget } from "../../aliases/api.ts";
import { Meaning } from "../../aliases/meaning.tsx";
import { AliasEntry, RouterEntry } from "./alias-entry.tsx";
import { type Entry, type Section, configurationQuery, deleteEntry } from "./configuration-api.ts";
import own from "../operator.module.css";
import { ProviderEntry } from "./provider-entry.tsx";
import { draftOf, emptyProvider } from "./provider-draft.ts";

const sections: readonly {
  section: Section;
  title: string;
  add: string;
  none: string;
}[] = [
  {
    section: "providers",
    title: "Providers",
    add: "Add provider",
    none: "No provider of your own. Providers that the gateway knows need only their key in the environment.",
  },
  {
    section: "aliases",
    title: "Aliases",
    add: "Add alias",
    none: "No alias. An alias is a name of yours for a model, such as fast.",
  },
  {
    section: "routers",
    title: "Routing presets",
    add: "Set members",
    none: "The routing presets choose from every model that is reached.",
  },
];

/** What an entry comes to, in a few words. */
function gistOf({ section, value }: Entry): ReactNode {
  if (section === "aliases") return <Meaning target={value["target"] as AliasTarget} />;
  if (section === "routers")
    return Array.isArray(value["members"]) ? value["members"].join(", ") : "";
  const models = Array.isArray(value["models"]) ? value["models"].length : 0;
  const address = typeof value["base_url"] === "string" ? value["base_url"] : "address built in";
  return `${address}, ${countOf(models, "model")}`;
}

function State({ entry: { in_force: inForce, problem, source } }: { entry: Entry }) {
  if (source === "file") return <Status kind="good">in switchyard.yaml</Status>;
  if (inForce) return <Status kind="good">in force</Status>;
  return <Status kind="warning">{problem ?? "the file has this id, and takes precedence"}</Status>;
}

function Entries({
  entries,
  of: { section, title, add, none },
  onOpen,
  onDelete,
}: {
  entries: readonly Entry[];
  of: (typeof sections)[number];
  onOpen: (entry: Entry | undefined) => void;
  onDelete: (entry: Entry) => void;
}) {
  const rows = entries.filter((entry) => entry.section === section);
  return (
    <Card
      title={title}
      flush
      actions={
        <Button look="plain" onClick={() => onOpen(undefined)}>
          {add}
        </Button>
      }
    >
      {rows.length === 0 ? (
        <Empty>{none}</Empty>
      ) : (
        <Table
          rows={rows}
          rowKey={({ source, id }) => `${source} ${id}`}
          caption={title}
          columns={[
            { head: "Id", phone: "title", cell: ({ id }) => <code>{id}</code> },
            { head: "What it is", phone: "when", cell: gistOf },
            { head: "State", phone: "state", cell: (entry) => <State entry={entry} /> },
            { head: `Changed, ${zoneName()}`, cell: ({ updated_at: at }) => <Moment at={at} /> },
            {
              head: "Actions",
              phone: "figure",
              cell: (entry) =>
                entry.source === "file" ? (
                  "in the file"
                ) : (
                  <RowMenu
                    label={`Actions of ${entry.id}`}
                    actions={[
                      ["Edit", () => onOpen(entry)],
                      ["Delete", () => onDelete(entry)],
                    ]}
                  />
                ),
            },
          ]}
        />
      )}
    </Card>
  );
}

/** The form of a section, for a new entry or for one that is changed. */
function EntryForm({
  section,
  entry,
  onSaved,
}: {
  section: Section;
  entry: Entry | undefined;
  onSaved: () => void;
}) {
  if (section === "aliases") return <AliasEntry entry={entry} onSaved={onSaved} />;
  if (section === "routers") return <RouterEntry entry={entry} onSaved={onSaved} />;
  return (
    <ProviderEntry
      stored={entry === undefined ? emptyProvider : draftOf(entry.id, entry.value)}
      isNew={entry === undefined}
      onSaved={onSaved}
    />
  );
}

/** Providers, aliases and routing presets of the file and of the page, which changes its own. */
export function Configuration() {
  const queries = useQueryClient();
  const entries = useQuery(configurationQuery);
  const [opened, setOpened] = useState<{ section: Section; entry: Entry | undefined }>();
  const [doomed, setDoomed] = useState<Entry>();
  const [problem, setProblem] = useState<unknown>(null);
  const close = (): void => {
    setOpened(undefined);
    setDoomed(undefined);
  };
  const done = async (): Promise<void> => {
    close();
    await queries.invalidateQueries();
  };
  const remove = useMutation({
    meta: { done: "Configuration changed" },
    mutationFn: deleteEntry,
    onSuccess: done,
  });
  const title =
    opened?.entry?.id ?? sections.find(({ section }) => section === opened?.section)?.add ?? "";
  const form = opened === undefined ? null : <EntryForm {...opened} onSaved={() => void done()} />;
  return (
    <>
      <div className={own["note"]}>
        <p>
          Changes take effect on every gateway at once. What <code>switchyard.yaml</code> has is
          changed there, and takes precedence.
        </p>
        <Button
          look="plain"
          onClick={() =>
            void download("/admin/configuration/export", "switchyard-page.yaml").catch(setProblem)
          }
        >
          Download YAML
        </Button>
      </div>
      {problem === null ? null : <Problem error={problem} />}
      <Loaded query={entries} height={320}>
        {({ data }) =>
          sections.map((of) => (
            <Entries
              key={of.section}
              entries={data}
              of={of}
              onOpen={(entry) => setOpened({ section: of.section, entry })}
              onDelete={setDoomed}
            />
          ))
        }
      </Loaded>
      <Drawer title={title} open={opened?.section === "providers"} onClose={close}>
        {form}
      </Drawer>
      <Modal
        title={title}
        open={opened !== undefined && opened.section !== "providers"}
        onClose={close}
      >
        {form}
      </Modal>
      <Confirm
        title={`Delete ${doomed?.id ?? ""}`}
        open={doomed !== undefined}
        onClose={close}
        action="Delete"
        work={remove}
        onConfirm={() => doomed && remove.mutate(doomed)}
      >
        <p>Requests that need it fail at once; those in progress go on.</p>
      </Confirm>
    </>
  );
}
