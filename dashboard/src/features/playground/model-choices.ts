import { useQuery } from "@tanstack/react-query";
import { useScope } from "../../lib/session.ts";
import type { ChoiceGroup } from "../../ui/picker-popup.tsx";
import { type Model, reachableQuery } from "../models/api.ts";
import { choiceOf } from "../models/model-choice.ts";
import { type UsageRow, usageQuery } from "../usage/api.ts";
import { presetsQuery } from "./api.ts";
import type { MediaKind } from "./draft.ts";

const recentMax = 5;

/** What models make that do not chat, by the capability that says so, with the heading of each. */
const mediaKinds: readonly (readonly [capability: string, kind: MediaKind, heading: string])[] = [
  ["image-generation", "picture", "Make pictures"],
  ["speech", "speech", "Speak"],
  ["transcription", "transcript", "Write down what is said"],
];

/** What a model makes; undefined for one that chats, and for presets, which are taken for chat. */
const mediaKindOf = ({ capabilities }: Model): MediaKind | undefined =>
  capabilities.includes("chat")
    ? undefined
    : mediaKinds.find(([capability]) => capabilities.includes(capability))?.[1];

/** Whether a model takes sound along with a message, or alone. */
const hears = (model: Model): boolean =>
  model.capabilities.includes("audio-input") || mediaKindOf(model) === "transcript";

/**
 * The models that something is true of: those that the workspace used most in the last days first,
 * then those that cost nothing, then the newest.
 */
function ranked(
  models: readonly Model[],
  used: ReadonlyMap<string, number>,
  fits: (model: Model) => boolean,
): Model[] {
  const weightOf = ({ id, created = 0 }: Model): readonly number[] => [
    used.get(id) ?? 0,
    id.endsWith(":free") ? 1 : 0,
    created,
  ];
  return models
    .filter(fits)
    .map((model) => ({ model, weight: weightOf(model) }))
    .toSorted((one, other) => {
      const at = one.weight.findIndex((weight, index) => weight !== other.weight[index]);
      return at < 0 ? 0 : (other.weight[at] ?? 0) - (one.weight[at] ?? 0);
    })
    .map(({ model }) => model);
}

const chats = ({ capabilities }: Model): boolean => capabilities.includes("chat");

function requestsByModel(rows: readonly UsageRow[] = []): ReadonlyMap<string, number> {
  const requests = new Map<string, number>();
  for (const { model = "", requests: count } of rows)
    requests.set(model, count + (requests.get(model) ?? 0));
  return requests;
}

/** The id of the model that is asked where a person has chosen none. */
export const suggestedOf = (models: readonly Model[]): string =>
  ranked(models, new Map(), chats)[0]?.id ?? "";

/** What may be chosen as a model. */
interface ModelChoices {
  groups: readonly ChoiceGroup[];
  /** The model to begin with. */
  suggested: string;
  /** What the models make that do not chat, by their ids. */
  kinds: ReadonlyMap<string, MediaKind>;
  /** The ids of the models that take sound. */
  hearing: ReadonlySet<string>;
}

/** What may be chosen as a model, grouped, and what each of them takes and makes. */
export function useModelChoices(): ModelChoices {
  const { data: catalog } = useQuery(reachableQuery);
  const mayReadPresets = useScope("read:presets");
  const { data: presets } = useQuery({ ...presetsQuery, enabled: mayReadPresets });
  const mayReadUsage = useScope("read:analytics");
  const { data: usage } = useQuery({
    ...usageQuery({ range: { range: "14d" }, group: "model" }),
    enabled: mayReadUsage,
  });
  const used = requestsByModel(usage?.data);
  const all = catalog?.data ?? [];
  const models = ranked(all, used, chats);
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
    ...mediaKinds.map(([, kind, value]) => ({
      value,
      items: ranked(all, used, (model) => mediaKindOf(model) === kind).map(choiceOf),
    })),
  ].filter(({ items }) => items.length > 0);
  const kinds = all.flatMap((model) => {
    const kind = mediaKindOf(model);
    return kind === undefined ? [] : [[model.id, kind] as const];
  });
  return {
    groups,
    suggested: models[0]?.id ?? "",
    kinds: new Map(kinds),
    hearing: new Set(all.filter(hears).map(({ id }) => id)),
  };
}
