import { Name } from "../../ui/values.tsx";
import type { AliasTarget } from "./api.ts";

type Entry = Exclude<Exclude<AliasTarget, string>[number], string>;

const entriesOf = (target: AliasTarget): readonly Entry[] =>
  (typeof target === "string" ? [target] : target).map((entry) =>
    typeof entry === "string" ? { model: entry } : entry,
  );

const inOrder = (entries: readonly Entry[]): string =>
  entries.flatMap(({ model }) => model).join(", then ");

/** Returns a condition in words: `if tag is beta and header x-team is research`. */
function conditionOf({ key, tag, header = {}, metadata = {} }: NonNullable<Entry["when"]>): string {
  const members = (kind: string, of: Readonly<Record<string, unknown>>) =>
    Object.entries(of).map(([name, value]) => `${kind} ${name} is ${String(value)}`);
  const facts = [
    ...(key === undefined ? [] : [`key is ${key}`]),
    ...(tag === undefined ? [] : [`tag is ${tag}`]),
    ...members("header", header),
    ...members("metadata", metadata),
  ];
  return facts.length === 0 ? "always" : `if ${facts.join(" and ")}`;
}

/**
 * Returns what a name means, a line for each choice: models in the order in which they are asked,
 * with their share or the condition under which they count.
 */
function linesOf(target: AliasTarget): readonly string[] {
  const entries = entriesOf(target);
  const isConditional = entries.some(({ when }) => when !== undefined);
  if (!isConditional && entries[0]?.weight === undefined) return [inOrder(entries)];
  const sum = entries.reduce((total, { weight = 0 }) => total + weight, 0);
  // The shares of a split depend on which conditions are met.
  const shareOf = (weight: number): string =>
    isConditional ? `weight ${weight}` : `${Number(((100 * weight) / sum).toFixed(1))} %`;
  return entries.map((entry) => {
    const condition = entry.when === undefined ? "otherwise" : conditionOf(entry.when);
    const share = entry.weight === undefined ? "" : `, ${shareOf(entry.weight)}`;
    return `${isConditional ? `${condition}: ` : ""}${inOrder([entry])}${share}`;
  });
}

/** What an alias means, in words. */
export const Meaning = ({ target }: { target: AliasTarget }) =>
  linesOf(target).map((line) => <Name key={line}>{line}</Name>);
