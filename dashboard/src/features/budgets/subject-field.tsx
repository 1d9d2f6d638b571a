import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Field } from "../../ui/fields.tsx";
import { Picker } from "../../ui/picker.tsx";
import { customerPagesQuery } from "../customers/api.ts";
import { keysQuery } from "../keys/api.ts";
import { reachableQuery } from "../models/api.ts";
import { choiceOf } from "../models/model-choice.ts";
import { providersQuery } from "../provider-keys/api.ts";
import { teamsQuery } from "../teams/api.ts";
import { useNames } from "../usage/use-names.ts";
import type { Choice } from "../../ui/picker-popup.tsx";

/** What a budget can be about, beside the whole workspace. */
export type SubjectScope = "team" | "key" | "user" | "model" | "provider" | "customer";

const words: Readonly<Record<SubjectScope, readonly [one: string, all: string]>> = {
  team: ["Team", "teams"],
  key: ["Key", "keys"],
  user: ["Person", "people"],
  model: ["Model", "models"],
  provider: ["Provider", "providers"],
  customer: ["Customer", "customers"],
};

const each: Choice = { value: "*", label: "Each by itself", note: "the limit is that of each one" };

/** What there is of a scope to choose from, by name. */
function useChoices(scope: SubjectScope): readonly Choice[] {
  const keys = useQuery({ ...keysQuery, enabled: scope === "key" });
  const teams = useQuery({ ...teamsQuery, enabled: scope === "team" });
  const models = useQuery({ ...reachableQuery, enabled: scope === "model" });
  const providers = useQuery({ ...providersQuery, enabled: scope === "provider" });
  const customers = useInfiniteQuery({ ...customerPagesQuery, enabled: scope === "customer" });
  const { people } = useNames(scope === "user" ? ["person"] : []);
  if (scope === "model") return models.data?.data.map(choiceOf) ?? [];
  if (scope === "user") return [...people].map(([value, label]) => ({ value, label, note: "" }));
  if (scope === "customer") {
    const rows = customers.data?.pages.flatMap(({ data }) => data) ?? [];
    return [
      each,
      ...rows.map(({ external_id: value, name }) => ({ value, label: name, note: value })),
    ];
  }
  if (scope === "key")
    return (
      keys.data?.data.map(({ id, name, label }) => ({ value: id, label: name, note: label })) ?? []
    );
  const named = scope === "team" ? teams : providers;
  return named.data?.data.map(({ id, name }) => ({ value: id, label: name, note: "" })) ?? [];
}

/** Chooses what a budget is about by its name. */
export function SubjectField({
  scope,
  value,
  onChange,
}: {
  scope: SubjectScope;
  value: string;
  onChange: (subject: string) => void;
}) {
  const items = useChoices(scope);
  const [one, all] = words[scope];
  const chosen = items.find((item) => item.value === value)?.label ?? value;
  return (
    <Field label={one}>
      {() => (
        <Picker
          label={one}
          value={value}
          shown={chosen === "" ? "Choose one" : chosen}
          groups={[{ value: "", items }]}
          onChange={onChange}
          search={`Search ${all}`}
          none={`There is no such ${one.toLowerCase()}.`}
        />
      )}
    </Field>
  );
}
