import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { createPreset } from "../presets/api.ts";
import { Field, Input } from "../../ui/fields.tsx";
import { Form } from "../../ui/form.tsx";
import { Modal } from "../../ui/overlay.tsx";
import { type Settings, presetConfigOf } from "./draft.ts";

/** The name of a preset in requests, made of the name that people read. */
const slugOf = (name: string): string =>
  name
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replaceAll(/^-+|-+$/g, "")
    .slice(0, 60);

/** Keeps the model and settings of a column under a name, for requests from programs. */
export function SavePreset({
  column,
  open,
  onClose,
  onSaved,
}: {
  column: Settings;
  open: boolean;
  onClose: () => void;
  onSaved: (slug: string) => void;
}) {
  const queries = useQueryClient();
  const [name, setName] = useState("");
  const slug = slugOf(name);
  const save = useMutation({
    mutationFn: async () => createPreset({ slug, name, config: presetConfigOf(column) }),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ["preset-names"] });
      await queries.invalidateQueries({ queryKey: ["presets"] });
      onSaved(slug);
    },
  });
  return (
    <Modal title="Save as preset" open={open} onClose={onClose}>
      <Form action="Save preset" work={save} onSubmit={() => save.mutate()} disabled={slug === ""}>
        <Field
          label="Name"
          hint={
            slug === ""
              ? "Programs send it in place of a model."
              : `Programs send @preset/${slug} in place of a model.`
          }
        >
          {(id) => (
            <Input
              id={id}
              value={name}
              required
              maxLength={200}
              onChange={(event) => setName(event.target.value)}
            />
          )}
        </Field>
      </Form>
    </Modal>
  );
}
