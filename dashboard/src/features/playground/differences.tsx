import { diffWordsWithSpace } from "diff";
import { useState } from "react";
import { Actions } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { Select } from "../../ui/fields.tsx";
import own from "./playground.module.css";
import type { Answer } from "./stream.ts";

/** Words that are looked at before two answers count as too different. */
const editsMax = 4_000;

/** A column of a comparison: a model and what it answered. */
export interface Compared {
  model: string;
  answer: Answer;
}

function Side({
  compared: { model },
  parts,
  mark: Mark,
}: {
  compared: Compared;
  parts: readonly { value: string; changed: boolean }[];
  mark: "del" | "ins";
}) {
  return (
    <section aria-label={`Only in ${model} is marked`}>
      <h3>{model}</h3>
      <p className={own["answer"]}>
        {parts.map(({ value, changed }, index) =>
          changed ? (
            <Mark key={index} className={own[Mark]}>
              {value}
            </Mark>
          ) : (
            <span key={index}>{value}</span>
          ),
        )}
      </p>
    </section>
  );
}

/** Two answers side by side, with the words marked that only one of them has. */
export function Differences({ columns }: { columns: readonly Compared[] }) {
  const [chosen, setChosen] = useState<readonly [number, number]>([0, 1]);
  const [left, right] = [columns[chosen[0]], columns[chosen[1]]];
  if (left === undefined || right === undefined) return null;
  const changes = diffWordsWithSpace(left.answer.text, right.answer.text, {
    maxEditLength: editsMax,
  });
  const options = columns.map(({ model }, index) => [String(index), model] as const);
  return (
    <Card title="Difference">
      {columns.length > 2 ? (
        <Actions>
          <Select
            label="First answer"
            value={String(chosen[0])}
            options={options}
            onChange={(value) => setChosen([Number(value), chosen[1]])}
          />
          <Select
            label="Second answer"
            value={String(chosen[1])}
            options={options}
            onChange={(value) => setChosen([chosen[0], Number(value)])}
          />
        </Actions>
      ) : null}
      {changes === undefined ? (
        <p>The answers have too little in common to be compared by words.</p>
      ) : (
        <div className={own["answers"]}>
          <Side
            compared={left}
            mark="del"
            parts={changes
              .filter(({ added }) => !added)
              .map(({ value, removed }) => ({ value, changed: removed }))}
          />
          <Side
            compared={right}
            mark="ins"
            parts={changes
              .filter(({ removed }) => !removed)
              .map(({ value, added }) => ({ value, changed: added }))}
          />
        </div>
      )}
    </Card>
  );
}
