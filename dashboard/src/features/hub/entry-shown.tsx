import { type Sending, sending } from "../../lib/api.ts";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { DownloadButton } from "../../ui/download-button.tsx";
import { count, localTime } from "../../lib/format.ts";
import { useScope } from "../../lib/session.ts";
import { Actions, Button, linkLook } from "../../ui/button.tsx";
import { Facts } from "../../ui/card.tsx";
import { Code } from "../../ui/copy.tsx";
import { Select } from "../../ui/fields.tsx";
import { Confirm } from "../../ui/form.tsx";
import { Loaded, Problem } from "../../ui/loaded.tsx";
import {
  type Entry,
  type Version,
  entryQuery,
  nameOf,
  pathOf,
  useChange,
  useMayChange,
  versionsQuery,
} from "./api.ts";
import { columnOf, fragmentOf } from "../playground/draft.ts";
import { EntryForm } from "./entry-form.tsx";

/** What makes an older version the newest again. */
function restored({ object }: Entry, { title, description, tags, body }: Version): Sending {
  if (object === "prompt")
    return sending("PATCH /prompts/{id}", {
      body,
      tags,
      title,
      ...(description === null ? {} : { description }),
    });
  return sending(object === "skill" ? "PATCH /skills/{id}" : "PATCH /hubs/{slug}/items/{item}", {
    body,
    tags,
    name: title,
  });
}

/** The text of an entry in the version that was chosen; an older one can be brought back. */
function Versions({ entry, mayChange }: { entry: Entry; mayChange: boolean }) {
  const path = pathOf(entry);
  const { data, error } = useQuery({ ...versionsQuery(path), enabled: entry.version > 1 });
  const [chosen, setChosen] = useState(String(entry.version));
  const changing = useChange();
  const versions = data?.data ?? [];
  const shown = versions.find(({ version }) => String(version) === chosen);
  const isOld = shown !== undefined && shown.version !== entry.version;
  return (
    <>
      {versions.length < 2 ? null : (
        <Actions>
          <Select
            label="Version"
            value={chosen}
            onChange={setChosen}
            options={versions.map(({ version, created_at: at }) => [
              String(version),
              `Version ${version}, ${localTime(at)}`,
            ])}
          />
          {isOld && mayChange ? (
            <Button
              disabled={changing.isPending}
              onClick={() => changing.mutate({ path, ...restored(entry, shown) })}
            >
              Restore this version
            </Button>
          ) : null}
        </Actions>
      )}
      {error === null ? null : <Problem error={error} />}
      {changing.error === null ? null : <Problem error={changing.error} />}
      {isOld ? <p>{shown.title}</p> : null}
      <Code text={shown?.body ?? entry.body ?? ""} />
    </>
  );
}

/** Stars, copies, saves and deletes an entry, as far as the person may. */
function EntryActions({
  entry,
  mayChange,
  onEdit,
  onGone,
}: {
  entry: Entry;
  mayChange: boolean;
  onEdit: () => void;
  onGone: () => void;
}) {
  const mayWrite = useScope("write:hub");
  const mayAsk = useScope("inference");
  const changing = useChange();
  const [isDoomed, setDoomed] = useState(false);
  const path = pathOf(entry);
  const isStarred = entry.object === "prompt" || entry.object === "skill";
  const star = { method: entry.starred ? "DELETE" : "POST", path: `${path}/star` };
  return (
    <>
      <Actions>
        {mayChange ? <Button onClick={onEdit}>Edit</Button> : null}
        {mayWrite && isStarred ? (
          <>
            <Button look="plain" onClick={() => changing.mutate(star)}>
              {entry.starred ? "Take the star back" : "Star"}
            </Button>
            <Button
              look="plain"
              onClick={() =>
                changing.mutate({
                  path: `${path}/fork`,
                  ...sending(
                    entry.object === "prompt"
                      ? "POST /prompts/{id}/fork"
                      : "POST /skills/{id}/fork",
                    {},
                  ),
                })
              }
            >
              Copy into this workspace
            </Button>
          </>
        ) : null}
        {mayAsk && entry.body ? (
          <Link
            to="/playground"
            className={linkLook}
            hash={fragmentOf({
              columns: [
                columnOf({
                  system: entry.body,
                  ...(entry.object === "prompt" ? { hubPrompt: entry.id } : {}),
                }),
              ],
              prompt: "",
            }).slice(1)}
          >
            Open in the playground
          </Link>
        ) : null}
        {entry.object === "skill" ? (
          <DownloadButton path={`${path}/export`} name="skill.zip" label="Download" />
        ) : null}
        {mayChange ? (
          <Button look="danger" onClick={() => setDoomed(true)}>
            Delete
          </Button>
        ) : null}
      </Actions>
      {changing.error === null || isDoomed ? null : <Problem error={changing.error} />}
      <Confirm
        title={`Delete ${nameOf(entry)}`}
        open={isDoomed}
        onClose={() => setDoomed(false)}
        action="Delete entry"
        work={changing}
        onConfirm={() => changing.mutate({ method: "DELETE", path }, { onSuccess: onGone })}
      >
        <p>Its versions go with it. Copies of it stay.</p>
      </Confirm>
    </>
  );
}

/** An entry with its text, its versions and what may be done with it. */
export function EntryShown({ path, onGone }: { path: string; onGone: () => void }) {
  const entry = useQuery(entryQuery(path));
  const mayChange = useMayChange();
  const [isEdited, setEdited] = useState(false);
  return (
    <Loaded query={entry} height={320}>
      {(shown) => (
        <>
          <h2>{nameOf(shown)}</h2>
          {isEdited ? (
            <>
              <EntryForm place={{ entry: shown }} onDone={() => setEdited(false)} />
              <Actions>
                <Button look="plain" onClick={() => setEdited(false)}>
                  Discard changes
                </Button>
              </Actions>
            </>
          ) : (
            <>
              {shown.description === null ? null : <p>{shown.description}</p>}
              <Facts
                rows={[
                  ["Kind", shown.object.replaceAll("_", " ")],
                  ["Seen by", shown.visibility],
                  ["Version", shown.version],
                  ["Stars", count(shown.stars)],
                  ["Tags", shown.tags.join(", ") || "–"],
                  ...(shown.hub === null ? [] : [["Collection", shown.hub] as const]),
                  ...(shown.status ? [["Review", shown.status] as const] : []),
                ]}
              />
              <EntryActions
                entry={shown}
                mayChange={mayChange(shown)}
                onEdit={() => setEdited(true)}
                onGone={onGone}
              />
              <Versions key={shown.version} entry={shown} mayChange={mayChange(shown)} />
            </>
          )}
        </>
      )}
    </Loaded>
  );
}
