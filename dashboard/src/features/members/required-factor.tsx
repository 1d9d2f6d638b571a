import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Button } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { Confirm } from "../../ui/form.tsx";
import { Problem } from "../../ui/loaded.tsx";
import { Status } from "../../ui/values.tsx";
import { type Organization, requireSecondFactor } from "./api.ts";
import style from "./members.module.css";

/** Whether members need a second factor to enter the organisation: for its owners. */
export function RequiredFactor({ organization }: { organization: Organization }) {
  const { id, name, second_factor_required: isRequired } = organization;
  const queries = useQueryClient();
  const [isAsking, setAsking] = useState(false);
  const change = useMutation({
    meta: { done: "Rule of sign-in changed" },
    mutationFn: requireSecondFactor,
    onSuccess: () => {
      setAsking(false);
      return queries.invalidateQueries();
    },
  });
  return (
    <Card title="Second factor">
      <div className={style["row"]}>
        <span>
          {isRequired ? (
            <Status kind="good">required of all members</Status>
          ) : (
            "Left to each member"
          )}
        </span>
        <Button
          look="plain"
          onClick={() => (isRequired ? change.mutate({ id, required: false }) : setAsking(true))}
        >
          {isRequired ? "Require it no longer" : "Require a second factor"}
        </Button>
      </div>
      {isAsking || change.error === null ? null : <Problem error={change.error} />}
      <Confirm
        title={`Require a second factor in ${name}`}
        open={isAsking}
        onClose={() => setAsking(false)}
        action="Require it"
        work={change}
        onConfirm={() => change.mutate({ id, required: true })}
      >
        <p>
          Members who sign in with a password alone cannot enter {name} from their next request on,
          until they set up an authenticator app in their account. Keys work as before.
        </p>
      </Confirm>
    </Card>
  );
}
