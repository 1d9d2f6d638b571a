import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { usd } from "../../lib/format.ts";
import { Actions, Button } from "../../ui/button.tsx";
import { Card, Facts } from "../../ui/card.tsx";
import { Check, Field, Input } from "../../ui/fields.tsx";
import { Form } from "../../ui/form.tsx";
import { Loaded, Problem } from "../../ui/loaded.tsx";
import { Status } from "../../ui/values.tsx";
import style from "../../ui/ui.module.css";
import { type Automatic, agreeToAutomatic, automaticQuery, endAutomatic } from "./api.ts";

const kinds = { on: "good", off: undefined, stopped: "bad" } as const;

function Terms({ automatic }: { automatic: Automatic }) {
  return (
    <Facts
      rows={[
        [
          "State",
          <Status key="state" kind={kinds[automatic.status]}>
            {automatic.status}
          </Status>,
        ],
        ["Card", automatic.card ?? "none saved"],
        ["Below", usd(automatic.threshold)],
        ["Buys", usd(automatic.amount)],
        ["Charges", usd(automatic.total)],
        ["At most a month", usd(automatic.monthly_limit)],
        ["Charged this month", usd(automatic.charged_this_month)],
      ]}
    />
  );
}

/**
 * Top-ups that the saved card is charged for when the balance falls low, within a monthly bound
 * that its owner agreed to.
 */
export function AutomaticTopUps({ mayChange }: { mayChange: boolean }) {
  const queries = useQueryClient();
  const automatic = useQuery(automaticQuery);
  const [threshold, setThreshold] = useState("5");
  const [amount, setAmount] = useState("20");
  const [limit, setLimit] = useState("100");
  const [agrees, setAgrees] = useState(false);
  const refresh = (): Promise<void> => queries.invalidateQueries({ queryKey: ["credits"] });
  const agree = useMutation({
    meta: { done: "Automatic top-up is on" },
    mutationFn: () =>
      agreeToAutomatic({
        threshold: Number(threshold),
        amount: Number(amount),
        monthly_limit: Number(limit),
        consent: true,
      }),
    onSuccess: refresh,
  });
  const end = useMutation({
    meta: { done: "Automatic top-up is off" },
    mutationFn: endAutomatic,
    onSuccess: refresh,
  });
  const field = (label: string, value: string, set: (value: string) => void) => (
    <Field label={label}>
      {(id) => (
        <Input
          id={id}
          type="number"
          min="1"
          step="0.01"
          required
          value={value}
          onChange={(event) => set(event.target.value)}
        />
      )}
    </Field>
  );
  return (
    <Card title="Automatic top-up">
      <Loaded query={automatic} height={160}>
        {(data) => (
          <div className={style.stack}>
            <Terms automatic={data} />
            {data.stopped_reason === null ? null : (
              <Problem
                error={new Error(`Stopped: ${data.stopped_reason}. Agree again to go on.`)}
              />
            )}
            {!mayChange ? null : data.status === "on" ? (
              <Actions>
                <Button look="plain" disabled={end.isPending} onClick={() => end.mutate()}>
                  End automatic top-up
                </Button>
              </Actions>
            ) : (
              <Form
                action="Turn automatic top-up on"
                work={agree}
                onSubmit={() => agree.mutate()}
                disabled={!agrees}
              >
                <div className={style.grid}>
                  {field("When the balance falls below, USD", threshold, setThreshold)}
                  {field("Buy credits for, USD", amount, setAmount)}
                  {field("At most in a month, fees included, USD", limit, setLimit)}
                </div>
                <Check
                  label="I agree that the saved card is charged without asking again."
                  checked={agrees}
                  onChange={setAgrees}
                  hint="Save a card by a top-up first. You can end this at any time."
                />
              </Form>
            )}
            {end.error === null ? null : <Problem error={end.error} />}
          </div>
        )}
      </Loaded>
    </Card>
  );
}
