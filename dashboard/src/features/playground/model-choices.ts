import { useQuery } from "@tanstack/react-query";
import { useScope } from "../../lib/session.ts";
import { type Model, reachableQuery } from "../models/api.ts";
import { type ChoiceGroup, choiceOf } from "../models/model-picker.tsx";
import { type UsageRow, usageQuery } from "../usage/api.ts";
import { presetsQuery } from "./api.ts";

const recentMax = 5;

/**
 * The models that chat: those that the workspace used most in the last days first, then those that
 * cost nothing, then the newest.
 */
function chatModels(models: readonly Model[], used: ReadonlyMap<string, number>): Model[] {
  const weightOf = ({ id, created = 0 }: Model): readonly number[] => [
    used.get(id) ?? 0,
    id.endsWith(":free") ? 1 : 0,
    created,
  ];
  return models
    .filter(({ capabilities }) => capabilities.includes("chat"))
    .map((model) => ({ model, weight: weightOf(model) }))
    .toSorted((one, other) => {
      const at = one.weight.findIndex((weight, index) => weight !== other.weight[index]);
      return at < 0 ? 0 : (other.weight[at] ?? 0) - (one.weight[at] ?? 0);
    })
    .map(({ model }) => model);
}

function requestsByModel(rows: readonly UsageRow[] = []): ReadonlyMap<string, number> {
  const requests = new Map<string, number>();
  for (const { model = "", requests: count } of rows)
    requests.set(model, count + (requests.get(model) ?? 0));
  return requests;
}

/** The id of the model that is asked where a person has chosen none. */
export const suggestedOf = (models: readonly Model[]): string =>
  chatModels(models, new Map())[0]?.id ?? "";

/** What may stand in place of a model, grouped, and the model to begin with. */
export function useModelChoices(): { groups: readonly ChoiceGroup[]; suggested: string } {
  const { data: catalog } = useQuery(reachableQuery);
  const mayReadPresets = useScope("read:presets");
  const { data: presets } = useQuery({ ...presetsQuery, enabled: mayReadPresets });
  const mayReadUsage = useScope("read:analytics");
  const { data: usage } = useQuery({
    ...usageQuery({ range: { range: "14d" }, group: "model" }),
    enabled: mayReadUsage,
  });
  const used = requestsByModel(usage?.data);
  const models = chatModels(catalog?.data ?? [], used);
  const recent = models.filter(({ id }) => used.has(id)).slice(0, recentMax);
  const groups = [
    { value: "Used lately", items: recent.map(choiceOf) },
    {
      value: "Presets",
      items: (presets?.data ?? []).map(({ slug, name }) => ({
        value: `@preset/${slug}`,
        label: `@preset/${slug}`,
        note: name,
        price: "",
      })),
    },
    {
      value: "Models",
      items: models.filter((model) => !recent.includes(model)).map(choiceOf),
    },
  ].filter(({ items }) => items.length > 0);
  return { groups, suggested: models[0]?.id ?? "" };
}
