import { isDivision } from "./api.ts";

/** What the page can count. */
export const figures = [
  ["cost", "Spend"],
  ["requests", "Requests"],
  ["tokens", "Tokens"],
  ["errors", "Errors"],
] as const;

/** What it can count by. */
export const groups = [
  ["model", "by model"],
  ["provider", "by provider"],
  ["key", "by key"],
  ["person", "by person"],
  ["app", "by app"],
  ["customer", "by customer"],
  ["preset", "by preset"],
  ["session", "by session"],
  ["tag", "by tag"],
  ["part", "by part"],
] as const;

/** Heads of the columns that name a group. */
export const heads = {
  model: "Model",
  provider: "Provider",
  key: "Key",
  person: "Person",
  app: "App",
  customer: "Customer",
  preset: "Preset",
  session: "Session",
  tag: "Tag",
  part: "Part",
} as const;

/** How many groups have a row of their own; the others are summed. */
export const limits = [
  ["10", "10 rows"],
  ["25", "25 rows"],
  ["100", "100 rows"],
] as const;

const choiceOf = <Choice extends string>(
  choices: readonly (readonly [Choice, string])[],
  given: string | undefined,
): Choice | undefined => choices.find(([choice]) => choice === given)?.[0];

/** By what each group is divided once more; parts by few. */
function secondOf(search: Readonly<Record<string, string | undefined>>) {
  const second = choiceOf(groups.slice(0, -1), search["second"]);
  return search["group"] === "part" && !isDivision(second) ? undefined : second;
}

/** Reads from the address what is chosen; what it does not say is the usual. */
export const chosenOf = (search: Readonly<Record<string, string | undefined>>) => ({
  figure: choiceOf(figures, search["figure"]) ?? "cost",
  group: choiceOf(groups, search["group"]) ?? "model",
  // Parts divide requests, so they divide no group of them.
  second: secondOf(search),
  /** The name of the tag that requests are grouped by. */
  tag: search["tag"] ?? "",
  limit: choiceOf(limits, search["limit"]) ?? limits[0][0],
  isCumulative: search["sum"] === "up",
  isLocal: search["days"] === "local",
});

/** What is chosen. */
export type Chosen = ReturnType<typeof chosenOf>;
