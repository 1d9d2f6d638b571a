import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Button } from "../../ui/button.tsx";
import { Check } from "../../ui/fields.tsx";
import { Problem } from "../../ui/loaded.tsx";
import { Modal } from "../../ui/overlay.tsx";
import style from "../../ui/ui.module.css";
import { changePreferences, preferencesQuery } from "../account/preferences.ts";
import { choosableColumns } from "./generations-table.tsx";

/** The preference that has the names of the columns left out. */
const preference = "activity.hidden_columns";

/** Reads the columns that the person leaves out; undefined until they are known. */
export function useHiddenColumns(): readonly string[] | undefined {
  const { data, isPending } = useQuery(preferencesQuery);
  const hidden = data?.[preference];
  if (isPending) return undefined;
  return Array.isArray(hidden) ? hidden.filter((name) => typeof name === "string") : [];
}

/** Chooses the columns of the log, in every browser of the person. */
export function ColumnChoice({ hidden }: { hidden: readonly string[] }) {
  const [isOpen, setOpen] = useState(false);
  const queries = useQueryClient();
  const keep = useMutation({
    // One after the other, so that the last choice is the one that is kept.
    scope: { id: preference },
    mutationFn: (names: readonly string[]) => changePreferences({ [preference]: names }),
    onMutate: (names) =>
      queries.setQueryData(
        preferencesQuery.queryKey,
        (kept) => kept && { ...kept, [preference]: names },
      ),
    onSuccess: (kept) =>
      queries.setQueryData(preferencesQuery.queryKey, (before) => before ?? kept),
    onError: () => queries.invalidateQueries({ queryKey: preferencesQuery.queryKey }),
  });
  return (
    <>
      <Button look="plain" className={style.notOnPhone} onClick={() => setOpen(true)}>
        Columns
      </Button>
      <Modal title="Columns" open={isOpen} onClose={() => setOpen(false)}>
        {choosableColumns.map(({ name, head }) => (
          <Check
            key={name}
            label={head}
            checked={!hidden.includes(name)}
            onChange={(isShown) =>
              keep.mutate(isShown ? hidden.filter((each) => each !== name) : [...hidden, name])
            }
          />
        ))}
        {keep.error === null ? null : <Problem error={keep.error} />}
      </Modal>
    </>
  );
}
