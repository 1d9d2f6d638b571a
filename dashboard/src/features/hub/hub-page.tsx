import { sending } from "../../lib/api.ts";
import { useInfiniteQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useState } from "react";
import { useScope, useSession } from "../../lib/session.ts";
import { PageHead } from "../../ui/page.tsx";
import { Sections } from "../../ui/sections.tsx";
import { count } from "../../lib/format.ts";
import { Drawer, Modal } from "../../ui/overlay.tsx";
import { Actions, Button } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { Code } from "../../ui/copy.tsx";
import { Input, Select } from "../../ui/fields.tsx";
import { Empty, Problem } from "../../ui/loaded.tsx";
import { LoadedPages } from "../../ui/list-pages.tsx";
import { Name, Status } from "../../ui/values.tsx";
import style from "../../ui/ui.module.css";
import { RowButton, Table } from "../../ui/table.tsx";
import { WorkspaceName } from "../operator/workspace-name.tsx";
import {
  type Entry,
  type Kind,
  type Scope,
  entriesQuery,
  entryPath,
  nameOf,
  reviewsQuery,
  useChange,
} from "./api.ts";
import { Collections, HubForm } from "./collections.tsx";
import { EntryForm } from "./entry-form.tsx";
import { EntryShown } from "./entry-shown.tsx";

const route = getRouteApi("/hub");
const scopes = [
  ["workspace", "Of this workspace"],
  ["public", "Public"],
  ["starred", "Starred"],
] as const;
/** What the lists are for, where they are empty. */
const none: Readonly<Record<Kind, string>> = {
  prompts:
    "No prompt yet. A prompt that is published here is opened in the playground by everyone who sees it.",
  skills: "No skill yet. A skill is a set of instructions that agents load when a task needs them.",
};

function Entries({
  kind,
  scope,
  search,
  onOpen,
}: {
  kind: Kind;
  scope: Scope;
  search: string | undefined;
  onOpen: (id: string) => void;
}) {
  const entries = useInfiniteQuery(entriesQuery(kind, { scope, search }));
  return (
    <LoadedPages query={entries} height={320}>
      {(data) =>
        data.length === 0 ? (
          <Empty>{search === undefined ? none[kind] : "Nothing matches."}</Empty>
        ) : (
          <Table
            rows={data}
            rowKey={({ id }) => id}
            caption={kind === "prompts" ? "Prompts" : "Skills"}
            columns={[
              {
                head: "Name",
                phone: "title",
                cell: (entry) => (
                  <RowButton onClick={() => onOpen(entry.id)}>
                    <Name>{nameOf(entry)}</Name>
                  </RowButton>
                ),
              },
              { head: "About", phone: "note", cell: ({ description }) => description ?? "–" },
              {
                head: "Seen by",
                phone: "when",
                lead: "seen by",
                cell: ({ visibility }) => visibility,
              },
              {
                head: "Review",
                phone: "state",
                cell: ({ status }) =>
                  status ? (
                    <Status kind={status === "approved" ? "good" : "warning"}>
                      {status.replaceAll("_", " ")}
                    </Status>
                  ) : (
                    "–"
                  ),
              },
              { head: "Stars", number: true, cell: ({ stars }) => count(stars) },
            ]}
          />
        )
      }
    </LoadedPages>
  );
}

/** Public prompts that wait for an operator. */
function Reviews() {
  const reviews = useInfiniteQuery(reviewsQuery);
  const changing = useChange();
  const judge = ({ id, version }: Entry, verdict: "approve" | "reject"): void =>
    changing.mutate({
      path: `/admin/prompts/${encodeURIComponent(id)}/${verdict}`,
      ...sending(`POST /admin/prompts/{id}/${verdict}`, { version }),
    });
  return (
    <>
      {changing.error === null ? null : <Problem error={changing.error} />}
      <LoadedPages query={reviews} height={320}>
        {(data) =>
          data.length === 0 ? (
            <Empty>Nothing waits for a review.</Empty>
          ) : (
            <Table
              rows={data}
              rowKey={({ id }) => id}
              caption="Reviews"
              columns={[
                {
                  head: "Prompt",
                  cell: (entry) => (
                    <>
                      <div>{nameOf(entry)}</div>
                      <Code text={entry.body ?? ""} />
                    </>
                  ),
                },
                {
                  head: "Workspace",
                  cell: ({ workspace_id: id }) =>
                    id === undefined ? "–" : <WorkspaceName id={id} />,
                },
                {
                  head: "Actions",
                  cell: (entry) => (
                    <Actions>
                      <Button onClick={() => judge(entry, "approve")}>Approve</Button>
                      <Button look="plain" onClick={() => judge(entry, "reject")}>
                        Reject
                      </Button>
                    </Actions>
                  ),
                },
              ]}
            />
          )
        }
      </LoadedPages>
    </>
  );
}

const sections = [
  ["prompts", "Prompts"],
  ["skills", "Skills"],
  ["hubs", "Collections and knowledge"],
  ["reviews", "Reviews"],
] as const;

const creates = {
  prompts: "Publish a prompt",
  skills: "Publish a skill",
  hubs: "Create collection",
} as const;

/**
 * Prompts, skills and collections of the workspace and of everybody; operators review what is to be
 * public.
 */
export function HubPage() {
  const { group, status, q, id, item } = route.useSearch();
  const navigate = route.useNavigate();
  const { data: session } = useSession();
  const mayWrite = useScope("write:hub");
  const [isCreating, setCreating] = useState(false);
  const shown = sections.filter(
    ([section]) => section !== "reviews" || session?.user.operator === true,
  );
  const section = shown.find(([each]) => each === group)?.[0] ?? "prompts";
  const kind: Kind | undefined =
    section === "prompts" || section === "skills" ? section : undefined;
  const choices = kind === undefined ? scopes.slice(0, 2) : scopes;
  const scope = choices.find(([each]) => each === status)?.[0] ?? "workspace";
  const set = (changed: Record<string, string | undefined>): void =>
    void navigate({ search: (before) => ({ ...before, ...changed }), replace: true });
  return (
    <>
      <PageHead title="Hub">
        {mayWrite && section !== "reviews" ? (
          <Button onClick={() => setCreating(true)}>{creates[section]}</Button>
        ) : null}
      </PageHead>
      <Sections
        sections={shown}
        shown={section}
        onChoose={(each) => void navigate({ search: { group: each } })}
      />
      <Card title={sections.find(([each]) => each === section)?.[1] ?? ""} flush>
        {section === "reviews" ? (
          <Reviews />
        ) : (
          <div className={style.filters}>
            <Input
              key={section}
              type="search"
              aria-label="Search the hub"
              placeholder="Search"
              defaultValue={q}
              onKeyDown={(event) => {
                if (event.key === "Enter")
                  set({ q: event.currentTarget.value.trim() || undefined });
              }}
            />
            <Select
              label="Which"
              value={scope}
              options={choices}
              onChange={(value) => set({ status: value })}
            />
          </div>
        )}
        {kind === undefined ? null : (
          <Entries kind={kind} scope={scope} search={q} onOpen={(opened) => set({ id: opened })} />
        )}
        {section === "hubs" ? (
          <Collections
            scope={scope}
            search={q}
            opened={{ id, item }}
            onOpen={(opened) => set({ id: opened.id, item: opened.item })}
          />
        ) : null}
      </Card>
      <Drawer
        title={kind === "skills" ? "Skill" : "Prompt"}
        open={id !== undefined && kind !== undefined}
        onClose={() => set({ id: undefined })}
      >
        {id === undefined || kind === undefined ? null : (
          <EntryShown path={entryPath(kind, id)} onGone={() => set({ id: undefined })} />
        )}
      </Drawer>
      <Modal
        title={section === "hubs" ? "Create a collection" : "Publish"}
        open={isCreating}
        onClose={() => setCreating(false)}
      >
        {kind === undefined ? (
          <HubForm
            onDone={({ slug }) => {
              setCreating(false);
              set({ id: slug });
            }}
          />
        ) : (
          <EntryForm
            place={{ kind: kind === "prompts" ? "prompt" : "skill" }}
            onDone={() => setCreating(false)}
          />
        )}
      </Modal>
    </>
  );
}
