import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { Field, Input, Select, listOf } from "../../../ui/fields.tsx";
import { Form } from "../../../ui/form.tsx";
import { targetOf, textOf } from "../../aliases/target.ts";
import { TargetField } from "../../aliases/target-field.tsx";
import { ModelsField } from "../../models/models-field.tsx";
import { type Entry, putEntry } from "./configuration-api.ts";

/** A name of the operator's for a model, for fallbacks in order, or for a weighted choice. */
export function AliasEntry({ entry, onSaved }: { entry: Entry | undefined; onSaved: () => void }) {
  const [name, setName] = useState(entry?.id ?? "");
  const [target, setTarget] = useState(textOf(entry?.value["target"]));
  const save = useMutation({
    meta: { done: "Alias saved" },
    mutationFn: async () =>
      putEntry({ section: "aliases", id: name, value: { target: targetOf(target) } }),
    onSuccess: onSaved,
  });
  return (
    <Form action="Save alias" work={save} onSubmit={() => save.mutate()}>
      <Field label="Name" hint="What programs send as the model, such as fast.">
        {(id) => (
          <Input
            id={id}
            value={name}
            required
            readOnly={entry !== undefined}
            onChange={(event) => setName(event.target.value)}
          />
        )}
      </Field>
      <TargetField value={target} onChange={setTarget} />
    </Form>
  );
}

const routers = ["auto", "free", "cowork", "hermes", "latest"].map(
  (name) => [`service/${name}`, `service/${name}`] as const,
);

const modelsIn = (value: unknown): string => (Array.isArray(value) ? value.join("\n") : "");

/** The models that a routing preset chooses from. */
export function RouterEntry({ entry, onSaved }: { entry: Entry | undefined; onSaved: () => void }) {
  const [router, setRouter] = useState<string>(entry?.id ?? "service/auto");
  const [members, setMembers] = useState(modelsIn(entry?.value["members"]));
  const [quality, setQuality] = useState(modelsIn(entry?.value["quality"]));
  const save = useMutation({
    meta: { done: "Routing preset saved" },
    mutationFn: () => {
      const best = listOf(quality);
      const value = { members: listOf(members), ...(best.length === 0 ? {} : { quality: best }) };
      return putEntry({ section: "routers", id: router, value });
    },
    onSuccess: onSaved,
  });
  return (
    <Form action="Save members" work={save} onSubmit={() => save.mutate()}>
      <Field label="Routing preset">
        {(id) =>
          entry === undefined ? (
            <Select id={id} value={router} options={routers} onChange={setRouter} />
          ) : (
            <Input id={id} value={router} readOnly />
          )
        }
      </Field>
      <ModelsField
        label="Members"
        hint="Model ids, one a line."
        value={members}
        onChange={setMembers}
      />
      <ModelsField
        label="Of those, for hard requests"
        hint="Best first; may be empty."
        value={quality}
        onChange={setQuality}
        among={listOf(members)}
      />
    </Form>
  );
}
