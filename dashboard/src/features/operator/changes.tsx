import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Input, Problem } from "../../ui/parts.tsx";
import { change } from "./api.ts";

/** Changes something, and reads again what operators are shown. */
export function useChange() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSuccess: () => queries.invalidateQueries({ queryKey: ["operator"] }),
  });
}

/** Why a change was refused; absent where none was. */
export const ChangeProblem = ({ error }: { error: unknown }) =>
  error === null ? null : <Problem error={error} />;

/** Narrows a list to what has a text in it. */
export const SearchField = ({
  label,
  value,
  onSearch,
}: {
  label: string;
  value: string | undefined;
  onSearch: (text: string) => void;
}) => (
  <Input
    type="search"
    aria-label={label}
    placeholder={label}
    defaultValue={value}
    onKeyDown={(event) => {
      if (event.key === "Enter") onSearch(event.currentTarget.value.trim());
    }}
  />
);
