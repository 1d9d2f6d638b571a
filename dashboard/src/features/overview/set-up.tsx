import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useScope } from "../../lib/session.ts";
import { Button } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { Awaiting, isAwaited } from "../../ui/loaded.tsx";
import { Status } from "../../ui/values.tsx";
import { changePreferences, preferencesQuery } from "../account/preferences.ts";
import { budgetsQuery } from "../budgets/api.ts";
import { creditsQuery } from "../credits/api.ts";
import { providerKeysQuery } from "../provider-keys/api.ts";
import style from "./set-up.module.css";

const dismissal = "overview.set_up_dismissed";

/** Whether the workspace can pay; undefined where what could be read does not tell. */
function isFunded(
  balance: number | undefined,
  ownKeys: readonly unknown[] | undefined,
): boolean | undefined {
  if ((balance ?? 0) > 0 || (ownKeys?.length ?? 0) > 0) return true;
  return balance === undefined || ownKeys === undefined ? undefined : false;
}

/**
 * What leads to the first real answer, until all of it is done or the person has dismissed it. A
 * step of which nothing could be read is left out.
 */
export function SetUp({
  hasKey,
  hasRequest,
}: {
  hasKey: boolean | undefined;
  hasRequest: boolean | undefined;
}) {
  const queries = useQueryClient();
  const [seesKeys, seesBudgets] = [useScope("read:byok"), useScope("read:analytics")];
  const preferences = useQuery(preferencesQuery);
  const credits = useQuery(creditsQuery);
  const ownKeys = useQuery({ ...providerKeysQuery, enabled: seesKeys });
  const budgets = useQuery({ ...budgetsQuery, enabled: seesBudgets });
  const dismiss = useMutation({
    mutationFn: () => changePreferences({ [dismissal]: true }),
    onSuccess: (kept) => queries.setQueryData(preferencesQuery.queryKey, kept),
  });
  const steps = [
    { done: hasKey, label: "Create a key", to: "/keys" as const },
    { done: hasRequest, label: "Send a request", to: "/playground" as const },
    {
      done: isFunded(credits.data?.balance, seesKeys ? ownKeys.data?.data : []),
      label: "Add credits or a provider key",
      to: "/provider-keys" as const,
    },
    {
      done: budgets.data && budgets.data.data.length > 0,
      label: "Set a budget",
      to: "/budgets" as const,
    },
  ].filter((step) => step.done !== undefined);
  const answers = [preferences, credits, ownKeys, budgets];
  if (answers.some(isAwaited)) return <Awaiting queries={answers} />;
  const done = steps.filter((step) => step.done).length;
  if (
    preferences.data === undefined ||
    preferences.data[dismissal] === true ||
    done === steps.length
  )
    return null;
  return (
    <Card>
      <div className={style.row}>
        <strong>
          Set up: {done} of {steps.length}
        </strong>
        {steps.map(({ done: isDone, label, to }) => (
          <span key={label}>
            {isDone ? <Status kind="good">{label}</Status> : <Link to={to}>{label}</Link>}
          </span>
        ))}
        <Button look="plain" disabled={dismiss.isPending} onClick={() => dismiss.mutate()}>
          Dismiss
        </Button>
      </div>
    </Card>
  );
}
