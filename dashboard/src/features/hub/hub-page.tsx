import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { useScope, useSession } from "../../lib/session.ts";
import { PageHead } from "../../ui/page.tsx";
import { count } from "../../lib/format.ts";
import { Drawer, Modal } from "../../ui/overlay.tsx";
import {
  Actions,
  Button,
  Card,
  Code,
  Empty,
  Facts,
  Field,
  Input,
  Loaded,
  Problem,
  Select,
  Status,
} from "../../ui/parts.tsx";
import style from "../../ui/ui.module.css";
import { RowButton, Table } from "../../ui/table.tsx";
import {
  type Entry,
  type Kind,
  type Scope,
  change,
  entriesQuery,
  entryQuery,
  hubItemsQuery,
  hubsQuery,
  reviewsQuery,
} from "./api.ts";

const route = getRouteApi("/hub");
const scopes = [
  ["workspace", "Of this workspace"],
  ["public", "Public"],
  ["starred", "Starred"],
] as const;
const visibilities = [
  ["private", "Only you"],
  ["workspace", "This workspace"],
  ["public", "Everybody, after a review"],
] as const;

const nameOf = ({ title, name, id }: Entry): string => title ?? name ?? id;

function useChange() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSuccess: () => queries.invalidateQueries({ queryKey: ["hub"] }),
  });
}

/** Publishes a prompt, or a skill as an Agent Skills document. */
function PublishForm({ kind, onDone }: { kind: Kind; onDone: () => void }) {
  const [title, setTitle] = useState("");
  const [description, setDescription] = useState("");
  const [category, setCategory] = useState("");
  const [body, setBody] = useState("");
  const [visibility, setVisibility] = useState("workspace");
  const publish = useChange();
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    publish.mutate(
      {
        method: "POST",
        path: `/${kind}`,
        body: { ...(kind === "prompts" ? { title, description, category } : {}), body, visibility },
      },
      { onSuccess: onDone },
    );
  };
  return (
    <form onSubmit={submit}>
      {kind === "prompts" ? (
        <>
          <Field label="Title">
            {(id) => (
              <Input
                id={id}
                required
                maxLength={200}
                value={title}
                onChange={(event) => setTitle(event.target.value)}
              />
            )}
          </Field>
          <Field label="About">
            {(id) => (
              <Input
                id={id}
                required
                value={description}
                onChange={(event) => setDescription(event.target.value)}
              />
            )}
          </Field>
          <Field label="Category">
            {(id) => (
              <Input
                id={id}
                required
                maxLength={50}
                value={category}
                onChange={(event) => setCategory(event.target.value)}
              />
            )}
          </Field>
        </>
      ) : null}
      <Field
        label={kind === "prompts" ? "Prompt" : "SKILL.md"}
        hint={kind === "prompts" ? "" : "With front matter: name and description."}
      >
        {(id) => (
          <textarea
            id={id}
            className={style["input"]}
            required
            value={body}
            onChange={(event) => setBody(event.target.value)}
          />
        )}
      </Field>
      <Field label="Who sees it">
        {(id) => (
          <Select id={id} value={visibility} options={visibilities} onChange={setVisibility} />
        )}
      </Field>
      {publish.error === null ? null : <Problem error={publish.error} />}
      <br />
      <Actions>
        <Button type="submit" disabled={publish.isPending}>
          Publish
        </Button>
      </Actions>
    </form>
  );
}

function EntryShown({ kind, id, onClose }: { kind: Kind; id: string; onClose: () => void }) {
  const entry = useQuery(entryQuery(kind, id));
  const mayWrite = useScope("write:hub");
  const changing = useChange();
  const path = `/${kind}/${encodeURIComponent(id)}`;
  return (
    <Loaded query={entry} height={320}>
      {(shown) => (
        <>
          <h2>{nameOf(shown)}</h2>
          {shown.description === null ? null : <p>{shown.description}</p>}
          <Facts
            rows={[
              ["Seen by", shown.visibility],
              ["Version", shown.version],
              ["Stars", count(shown.stars)],
              ["Tags", shown.tags.join(", ") || "–"],
              ...(shown.status ? [["Review", shown.status] as const] : []),
            ]}
          />
          {mayWrite ? (
            <Actions>
              <Button
                look="plain"
                onClick={() =>
                  changing.mutate({
                    method: shown.starred ? "DELETE" : "POST",
                    path: `${path}/star`,
                  })
                }
              >
                {shown.starred ? "Take the star back" : "Star"}
              </Button>
              <Button
                look="plain"
                onClick={() => changing.mutate({ method: "POST", path: `${path}/fork`, body: {} })}
              >
                Copy into this workspace
              </Button>
              <Button
                look="danger"
                onClick={() => changing.mutate({ method: "DELETE", path }, { onSuccess: onClose })}
              >
                Delete
              </Button>
            </Actions>
          ) : null}
          {changing.error === null ? null : <Problem error={changing.error} />}
          <Code text={shown.body ?? ""} />
        </>
      )}
    </Loaded>
  );
}

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
  const entries = useQuery(entriesQuery(kind, { scope, search }));
  return (
    <Loaded query={entries} height={320}>
      {({ data }) =>
        data.length === 0 ? (
          <Empty>
            {search === undefined ? "Nothing here yet. Publish the first one." : "Nothing matches."}
          </Empty>
        ) : (
          <Table
            rows={data}
            rowKey={({ id }) => id}
            caption={kind === "prompts" ? "Prompts" : "Skills"}
            columns={[
              {
                head: "Name",
                cell: (entry) => (
                  <RowButton onClick={() => onOpen(entry.id)}>{nameOf(entry)}</RowButton>
                ),
              },
              { head: "About", cell: ({ description }) => description ?? "–" },
              { head: "Seen by", cell: ({ visibility }) => visibility },
              {
                head: "Review",
                cell: ({ status }) =>
                  status ? (
                    <Status kind={status === "approved" ? "good" : "warning"}>{status}</Status>
                  ) : (
                    "–"
                  ),
              },
              { head: "Stars", number: true, cell: ({ stars }) => count(stars) },
            ]}
          />
        )
      }
    </Loaded>
  );
}

/** Collections, each with the knowledge, prompts and skills that it holds. */
function Hubs() {
  const hubs = useQuery(hubsQuery);
  const [opened, setOpened] = useState<string>();
  const items = useQuery({ ...hubItemsQuery(opened ?? ""), enabled: opened !== undefined });
  return (
    <>
      <Loaded query={hubs} height={320}>
        {({ data }) =>
          data.length === 0 ? (
            <Empty>No collection yet. POST /hubs makes one.</Empty>
          ) : (
            <Table
              rows={data}
              rowKey={({ slug }) => slug}
              caption="Collections"
              columns={[
                {
                  head: "Name",
                  cell: ({ slug, name }) => (
                    <RowButton onClick={() => setOpened(slug)}>{name}</RowButton>
                  ),
                },
                { head: "About", cell: ({ description }) => description ?? "–" },
                { head: "Seen by", cell: ({ visibility }) => visibility },
                { head: "Entries", number: true, cell: ({ item_count: held }) => count(held) },
              ]}
            />
          )
        }
      </Loaded>
      <Drawer title="Collection" open={opened !== undefined} onClose={() => setOpened(undefined)}>
        <Loaded query={items} height={240}>
          {({ data }) =>
            data.length === 0 ? (
              <Empty>It holds nothing yet.</Empty>
            ) : (
              <Table
                rows={data}
                rowKey={({ id }) => id}
                caption="Entries of the collection"
                columns={[
                  { head: "Name", cell: nameOf },
                  { head: "Kind", cell: ({ object }) => object.replaceAll("_", " ") },
                  { head: "About", cell: ({ description }) => description ?? "–" },
                ]}
              />
            )
          }
        </Loaded>
      </Drawer>
    </>
  );
}

/** Public prompts that wait for an operator. */
function Reviews() {
  const reviews = useQuery(reviewsQuery);
  const changing = useChange();
  const judge = ({ id, version }: Entry, verdict: "approve" | "reject"): void =>
    changing.mutate({
      method: "POST",
      path: `/admin/prompts/${encodeURIComponent(id)}/${verdict}`,
      body: { version },
    });
  return (
    <>
      {changing.error === null ? null : <Problem error={changing.error} />}
      <Loaded query={reviews} height={320}>
        {({ data }) =>
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
                { head: "Workspace", cell: ({ workspace_id: id }) => <code>{id}</code> },
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
      </Loaded>
    </>
  );
}

const sections = [
  ["prompts", "Prompts"],
  ["skills", "Skills"],
  ["hubs", "Collections and knowledge"],
  ["reviews", "Reviews"],
] as const;

/**
 * Prompts, skills and knowledge of the workspace and of everybody; operators review what is to be
 * public.
 */
export function HubPage() {
  const { group, status, q, id } = route.useSearch();
  const navigate = route.useNavigate();
  const { data: session } = useSession();
  const mayWrite = useScope("write:hub");
  const [isPublishing, setPublishing] = useState(false);
  const shown = sections.filter(
    ([section]) => section !== "reviews" || session?.user.operator === true,
  );
  const section = shown.find(([each]) => each === group)?.[0] ?? "prompts";
  const kind: Kind | undefined =
    section === "prompts" || section === "skills" ? section : undefined;
  const scope = scopes.find(([each]) => each === status)?.[0] ?? "workspace";
  const set = (changed: Record<string, string | undefined>): void =>
    void navigate({ search: (before) => ({ ...before, ...changed }), replace: true });
  return (
    <>
      <PageHead title="Hub">
        {mayWrite && kind !== undefined ? (
          <Button onClick={() => setPublishing(true)}>
            {kind === "prompts" ? "Publish a prompt" : "Publish a skill"}
          </Button>
        ) : null}
      </PageHead>
      <nav aria-label="Sections">
        <Actions>
          {shown.map(([each, label]) => (
            <Button
              key={each}
              {...(each === section ? {} : { look: "plain" as const })}
              aria-current={each === section ? "page" : undefined}
              onClick={() => void navigate({ search: { group: each } })}
            >
              {label}
            </Button>
          ))}
        </Actions>
      </nav>
      <Card title={sections.find(([each]) => each === section)?.[1] ?? ""} flush>
        {kind === undefined ? null : (
          <Actions>
            <Input
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
              options={scopes}
              onChange={(value) => set({ status: value })}
            />
          </Actions>
        )}
        {kind === undefined ? null : (
          <Entries kind={kind} scope={scope} search={q} onOpen={(opened) => set({ id: opened })} />
        )}
        {section === "hubs" ? <Hubs /> : null}
        {section === "reviews" ? <Reviews /> : null}
      </Card>
      <Drawer
        title={kind === "skills" ? "Skill" : "Prompt"}
        open={id !== undefined && kind !== undefined}
        onClose={() => set({ id: undefined })}
      >
        {id === undefined || kind === undefined ? null : (
          <EntryShown kind={kind} id={id} onClose={() => set({ id: undefined })} />
        )}
      </Drawer>
      <Modal title="Publish" open={isPublishing} onClose={() => setPublishing(false)}>
        {kind === undefined ? null : (
          <PublishForm kind={kind} onDone={() => setPublishing(false)} />
        )}
      </Modal>
    </>
  );
}
