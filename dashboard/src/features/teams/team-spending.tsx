import { usd } from "../../lib/format.ts";
import { Bar } from "../../ui/bar.tsx";
import type { Team } from "./api.ts";

/** What the keys of a team spent, beside its limit. */
export function TeamSpending({ name, spent, limit }: Pick<Team, "name" | "spent" | "limit">) {
  if (limit === null) return usd(spent);
  return (
    <>
      <div>
        {usd(spent)} of {usd(limit)}
      </div>
      <Bar label={name} share={limit === 0 ? 1 : spent / limit} />
    </>
  );
}
