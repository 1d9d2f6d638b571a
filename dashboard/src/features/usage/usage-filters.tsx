import { type RangeSearch, timeZone } from "../../lib/time.ts";
import { Card } from "../../ui/card.tsx";
import { Input, Select } from "../../ui/fields.tsx";
import { hasZonedDays, isDivision } from "./api.ts";
import { type Chosen, figures, groups, limits } from "./usage-choices.ts";
import style from "./usage.module.css";

const ranges = [
  ["1h", "Last hour, UTC"],
  ["24h", "Last 24 hours, UTC"],
  ["7d", "Last 7 days, UTC"],
  ["14d", "Last 14 days, UTC"],
  ["30d", "Last 30 days, UTC"],
  ["90d", "Last 90 days, UTC"],
  ["own", "Dates of your own, UTC"],
] as const;
const dayMs = 86_400_000;

/** Changes what the address says; what is undefined is taken away. */
export type Change = (changed: Record<string, string | undefined>) => void;

const startOf = (day: string): string => `${day}T00:00:00.000Z`;
const dayOf = (atMs: number): string => new Date(atMs).toISOString().slice(0, 10);

/** Two UTC days between which everything is counted, the last one included. */
function OwnDates({ from, to, onChange }: RangeSearch & { onChange: Change }) {
  const first = from?.slice(0, 10) ?? "";
  const last = to === undefined ? "" : dayOf(Date.parse(to) - 1);
  const take = (begin: string, end: string): void => {
    if (begin === "" || end === "" || begin > end) return;
    onChange({
      range: undefined,
      from: startOf(begin),
      to: startOf(dayOf(Date.parse(startOf(end)) + dayMs)),
    });
  };
  return (
    <>
      <Input
        type="date"
        aria-label="From, UTC"
        value={first}
        onChange={(event) => take(event.target.value, last)}
      />
      <Input
        type="date"
        aria-label="To, UTC"
        value={last}
        onChange={(event) => take(first, event.target.value)}
      />
    </>
  );
}

interface PartProps {
  chosen: Chosen;
  onChange: Change;
}

/** By what each group is divided once more, and the name of the tag where one is chosen. */
const Division = ({ chosen: { group, second, tag }, onChange }: PartProps) => (
  <>
    <Select
      label="Second group"
      value={second ?? ""}
      options={[
        ["", "no second group"],
        ...groups.filter(([each]) =>
          group === "part" ? isDivision(each) : each !== group && each !== "part",
        ),
      ]}
      onChange={(value) => onChange({ second: value || undefined })}
    />
    {group === "tag" || second === "tag" ? (
      <Input
        aria-label="Name of the tag"
        placeholder="Name of the tag"
        title="A member of the requests' metadata, such as team"
        defaultValue={tag}
        onBlur={(event) => onChange({ tag: event.target.value.trim() || undefined })}
        onKeyDown={(event) => {
          if (event.key === "Enter")
            onChange({ tag: event.currentTarget.value.trim() || undefined });
        }}
      />
    ) : null}
  </>
);

/** How many groups have a row, and whether the chart adds up. */
const Shape = ({ chosen: { limit, isCumulative }, onChange }: PartProps) => (
  <>
    <Select
      label="Rows"
      value={limit}
      options={limits}
      onChange={(value) => onChange({ limit: value })}
    />
    <Select
      label="Sums"
      value={isCumulative ? "up" : ""}
      options={[
        ["", "each period"],
        ["up", "cumulative"],
      ]}
      onChange={(value) => onChange({ sum: value || undefined })}
    />
  </>
);

/** What is counted, by what, over which range: one bar above everything that follows from it. */
export function UsageFilters({
  chosen,
  range: { range, from, to },
  onChange,
}: {
  chosen: Chosen;
  range: RangeSearch;
  onChange: Change;
}) {
  const { figure, group, isLocal } = chosen;
  const isParts = group === "part";
  const isOwn = from !== undefined;
  const chooseRange = (value: string): void => {
    const todayMs = Date.parse(startOf(dayOf(Date.now())));
    onChange(
      value === "own"
        ? {
            range: undefined,
            from: startOf(dayOf(todayMs - 6 * dayMs)),
            to: startOf(dayOf(todayMs + dayMs)),
          }
        : { range: value, from: undefined, to: undefined },
    );
  };
  return (
    <Card label="What is shown">
      <div className={style["bar"]}>
        {isParts ? null : (
          <Select
            label="Figure"
            value={figure}
            options={figures}
            onChange={(value) => onChange({ figure: value })}
          />
        )}
        <Select
          label="Group"
          value={group}
          options={groups}
          onChange={(value) => onChange({ group: value })}
        />
        <Division chosen={chosen} onChange={onChange} />
        <Select
          label="Range"
          value={isOwn ? "own" : (range ?? "14d")}
          options={ranges}
          onChange={chooseRange}
        />
        {isOwn ? <OwnDates from={from} to={to} onChange={onChange} /> : null}
        {!isParts && hasZonedDays({ range, from, to }) ? (
          <Select
            label="Days"
            value={isLocal ? "local" : ""}
            options={[
              ["", "days in UTC"],
              ["local", `days in ${timeZone()}`],
            ]}
            onChange={(value) => onChange({ days: value || undefined })}
          />
        ) : null}
        {isParts ? null : <Shape chosen={chosen} onChange={onChange} />}
      </div>
    </Card>
  );
}
