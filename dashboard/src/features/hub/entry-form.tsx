import { useState } from "react";
import { Field, Input, Select, TextArea, listOf } from "../../ui/fields.tsx";
import { Form } from "../../ui/form.tsx";
import { type Sending, sending } from "../../lib/api.ts";
import { type Entry, nameOf, pathOf, useChange, visibilities, visibilityOf } from "./api.ts";

/** What an entry is, as its records have it. */
type Kind = "prompt" | "skill" | "knowledge_document" | "plugin";

const texts: Readonly<Record<Kind, readonly [label: string, hint: string]>> = {
  prompt: ["Prompt", ""],
  skill: ["SKILL.md", "With front matter: name and description."],
  knowledge_document: [
    "Document",
    "Markdown; its front matter may have a title and a description.",
  ],
  plugin: ["Plugin", "Its manifest."],
};
const kinds = [
  ["knowledge_document", "Knowledge document"],
  ["prompt", "Prompt"],
  ["skill", "Skill"],
  ["plugin", "Plugin"],
] as const;
const kindOf = (text: string): Kind => kinds.find(([kind]) => kind === text)?.[0] ?? "prompt";

interface Draft {
  name: string;
  description: string;
  category: string;
  tags: string;
  body: string;
  visibility: string;
}

const draftOf = (entry: Entry | undefined, body = ""): Draft => ({
  name: entry === undefined ? "" : nameOf(entry),
  description: entry?.description ?? "",
  category: entry?.category ?? "",
  tags: entry?.tags.join(", ") ?? "",
  body: entry?.body ?? body,
  visibility: entry?.visibility ?? "workspace",
});

const unlessEmpty = (name: string, text: string): Record<string, string> =>
  text.trim() === "" ? {} : { [name]: text };

/** What a draft sends: a prompt is described by fields, the others by their text. */
function sentOf(draft: Draft, { entry, kind }: { entry: Entry | undefined; kind: Kind }): Sending {
  const { name, description, category, body } = draft;
  const shared = { body, tags: listOf(draft.tags) };
  const visibility = visibilityOf(draft.visibility);
  const seen = entry === undefined || entry.hub === null ? { visibility } : {};
  if (kind === "prompt")
    return entry === undefined
      ? sending("POST /prompts", { ...shared, visibility, title: name, description, category })
      : sending("PATCH /prompts/{id}", {
          ...shared,
          ...seen,
          ...unlessEmpty("title", name),
          ...unlessEmpty("description", description),
          ...unlessEmpty("category", category),
        });
  if (kind === "skill")
    return sending(entry === undefined ? "POST /skills" : "PATCH /skills/{id}", {
      ...shared,
      ...seen,
    });
  return sending("PATCH /hubs/{slug}/items/{item}", { ...shared, ...unlessEmpty("name", name) });
}

/** An entry of a collection as it is added: prompts have their fields only once they are there. */
const addedOf = (draft: Draft, kind: Kind): Sending =>
  sending("POST /hubs/{slug}/items", {
    kind: kind === "knowledge_document" ? "kb" : kind,
    body: draft.body,
    tags: listOf(draft.tags),
    ...(kind === "skill" ? {} : unlessEmpty("name", draft.name)),
  });

/** Where an entry goes: an own one is changed, another is published, or added to a collection. */
type Place = { entry: Entry } | { kind: "prompt" | "skill"; body?: string } | { hub: string };

const actionOf = (place: Place): string => {
  if ("entry" in place) return "Save changes";
  return "hub" in place ? "Add entry" : "Publish";
};

/** Writes an entry: a new one, or another version of one. */
export function EntryForm({ place, onDone }: { place: Place; onDone: () => void }) {
  const entry = "entry" in place ? place.entry : undefined;
  const [draft, setDraft] = useState(() =>
    draftOf(entry, "kind" in place ? place.body : undefined),
  );
  const [chosen, setChosen] = useState<string>("knowledge_document");
  const work = useChange();
  const kind = kindOf(entry?.object ?? ("kind" in place ? place.kind : chosen));
  const isItem = "hub" in place || (entry !== undefined && entry.hub !== null);
  const [label, hint] = texts[kind];
  const set =
    (name: keyof Draft) =>
    (value: string): void =>
      setDraft((before) => ({ ...before, [name]: value }));
  const line = (name: keyof Draft, title: string, required: boolean, max = 200) => (
    <Field label={title}>
      {(id) => (
        <Input
          id={id}
          required={required}
          maxLength={max}
          value={draft[name]}
          onChange={(event) => set(name)(event.target.value)}
        />
      )}
    </Field>
  );
  const submit = (): void => {
    const request =
      "hub" in place
        ? { path: `${place.hub}/items`, ...addedOf(draft, kind) }
        : {
            path: entry === undefined ? `/${kind}s` : pathOf(entry),
            ...sentOf(draft, { entry, kind }),
          };
    work.mutate(request, { onSuccess: onDone });
  };
  const isPublished = kind === "prompt" && !("hub" in place);
  return (
    <Form action={actionOf(place)} work={work} onSubmit={submit}>
      {"hub" in place ? (
        <Field label="Kind">
          {(id) => <Select id={id} value={chosen} options={kinds} onChange={setChosen} />}
        </Field>
      ) : null}
      {kind === "skill" ? null : line("name", isPublished ? "Title" : "Name", isPublished)}
      {isPublished ? line("description", "About", entry === undefined, 2_000) : null}
      {isPublished ? line("category", "Category", entry === undefined, 50) : null}
      {line("tags", "Tags", false, 1_000)}
      <Field label={label} hint={hint}>
        {(id) => (
          <TextArea
            id={id}
            required
            rows={12}
            value={draft.body}
            onChange={(event) => set("body")(event.target.value)}
          />
        )}
      </Field>
      {isItem ? null : (
        <Field label="Who sees it">
          {(id) => (
            <Select
              id={id}
              value={draft.visibility}
              options={visibilities}
              onChange={set("visibility")}
            />
          )}
        </Field>
      )}
    </Form>
  );
}
