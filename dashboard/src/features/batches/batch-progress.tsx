import { count } from "../../lib/format.ts";
import { Status } from "../../ui/values.tsx";
import { Bar } from "../../ui/bar.tsx";
import type { Batch } from "./api.ts";

const kinds: Partial<Record<Batch["status"], "good" | "warning" | "bad">> = {
  completed: "good",
  failed: "bad",
  expired: "bad",
  cancelling: "warning",
};

/** The state of a batch in a word. */
export function BatchStatus({ status }: Pick<Batch, "status">) {
  const kind = kinds[status];
  const word = status.replace("_", " ");
  return kind === undefined ? <Status>{word}</Status> : <Status kind={kind}>{word}</Status>;
}

/** How many requests of a batch have ended, as a bar with its figures. */
export function BatchProgress({ batch }: { batch: Batch }) {
  const { total, completed, failed } = batch.request_counts;
  const ended = completed + failed;
  return (
    <>
      <div>
        {count(ended)} of {count(total)}
        {failed > 0 ? `, ${count(failed)} failed` : ""}
      </div>
      <Bar isProgress label="Requests" share={total === 0 ? 0 : ended / total} />
    </>
  );
}
