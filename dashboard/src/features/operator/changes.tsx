import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Problem } from "../../ui/loaded.tsx";
import { change } from "./api.ts";

/** Changes something, reads again what operators are shown, and says what was done. */
export function useChange(done: string) {
  const queries = useQueryClient();
  return useMutation({
    meta: { done },
    mutationFn: change,
    onSuccess: () => queries.invalidateQueries({ queryKey: ["operator"] }),
  });
}

/** Why a change was refused; absent where none was. */
export const ChangeProblem = ({ error }: { error: unknown }) =>
  error === null ? null : <Problem error={error} />;
