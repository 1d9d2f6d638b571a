import { Field, Input, Select } from "../../ui/fields.tsx";
import type { Budget } from "./api.ts";

const periods = [
  ["daily", "a day"],
  ["weekly", "a week, from Monday"],
  ["monthly", "a month"],
  ["total", "all time"],
] as const;

/** What may be spent in a period, as a person writes it. */
export interface LimitDraft {
  /** USD; empty where there is no limit. */
  limit: string;
  period: Budget["period"];
  /** Where the periods begin: `Europe/Berlin`. */
  zone: string;
}

/** The period of a draft as the API takes it: all time has no zone. */
export const periodOf = ({ period, zone }: LimitDraft) => ({
  period,
  ...(period !== "total" && { time_zone: zone }),
});

/** The fields of a limit. Its period is asked for where there is one, and it is not settled yet. */
export function LimitFields({
  draft,
  onChange,
  hint,
  isSettled = false,
}: {
  draft: LimitDraft;
  onChange: (changes: Partial<LimitDraft>) => void;
  /** What no limit means; absent where there has to be one. */
  hint?: string;
  /** Whether the period stays as it is. */
  isSettled?: boolean;
}) {
  const { limit, period, zone } = draft;
  const hasPeriod = !isSettled && (hint === undefined || limit !== "");
  return (
    <>
      <Field param="limit" label="Limit in USD" {...(hint === undefined ? {} : { hint })}>
        {(id) => (
          <Input
            id={id}
            type="number"
            min="0.000001"
            step="any"
            required={hint === undefined}
            value={limit}
            onChange={({ target }) => onChange({ limit: target.value })}
          />
        )}
      </Field>
      {hasPeriod ? (
        <Field label="Period">
          {(id) => (
            <Select
              id={id}
              value={period}
              options={periods}
              onChange={(chosen) => onChange({ period: chosen })}
            />
          )}
        </Field>
      ) : null}
      {hasPeriod && period !== "total" ? (
        <Field
          param="time_zone"
          label="Time zone"
          hint="Such as Europe/Berlin; periods begin there."
        >
          {(id) => (
            <Input
              id={id}
              required
              value={zone}
              onChange={({ target }) => onChange({ zone: target.value })}
            />
          )}
        </Field>
      ) : null}
    </>
  );
}
