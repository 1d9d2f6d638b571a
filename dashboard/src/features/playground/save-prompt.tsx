import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Modal } from "../../ui/overlay.tsx";
import { Field, Select } from "../../ui/fields.tsx";
import { type Entry, entryPath, entryQuery, nameOf, useMayChange } from "../hub/api.ts";
import { EntryForm } from "../hub/entry-form.tsx";
import type { Settings } from "./draft.ts";

/** Writes the system prompt as another version of the prompt that it came from, or as a new one. */
function Saving({
  system,
  source,
  onClose,
}: {
  system: string;
  /** The prompt that the column was opened with, where the person may change it. */
  source: Entry | undefined;
  onClose: () => void;
}) {
  const [place, setPlace] = useState<"version" | "new">(source === undefined ? "new" : "version");
  return (
    <>
      {source === undefined ? null : (
        <Field label="Save as">
          {(id) => (
            <Select
              id={id}
              value={place}
              options={[
                ["version", `Another version of ${nameOf(source)}`],
                ["new", "A new prompt"],
              ]}
              onChange={setPlace}
            />
          )}
        </Field>
      )}
      {source !== undefined && place === "version" ? (
        <EntryForm key="version" place={{ entry: { ...source, body: system } }} onDone={onClose} />
      ) : (
        <EntryForm key="new" place={{ kind: "prompt", body: system }} onDone={onClose} />
      )}
    </>
  );
}

/** Saves the system prompt of a column to the hub. */
export function SavePrompt({ column, onClose }: { column: Settings; onClose: () => void }) {
  const { system, hubPrompt } = column;
  const mayChange = useMayChange();
  const source = useQuery({
    ...entryQuery(entryPath("prompts", hubPrompt)),
    enabled: hubPrompt !== "",
  });
  const isKnown = hubPrompt === "" || !source.isLoading;
  const own = source.data !== undefined && mayChange(source.data) ? source.data : undefined;
  return (
    <Modal title="Save the system prompt to the hub" open onClose={onClose}>
      {isKnown ? <Saving system={system} source={own} onClose={onClose} /> : null}
    </Modal>
  );
}
