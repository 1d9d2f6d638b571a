import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { usd } from "../../lib/format.ts";
import { Actions, Button } from "../../ui/button.tsx";
import { Check, Field, Input, numberOf } from "../../ui/fields.tsx";
import { Form } from "../../ui/form.tsx";
import { Problem } from "../../ui/loaded.tsx";
import { type ProviderKey, changeDonation, donateKey, withdrawKey } from "./api.ts";

/**
 * Shares a key with the pool of this installation, with the owner's consent; or pauses it, bounds
 * it and takes it back.
 */
export function Donation({ stored, onChanged }: { stored: ProviderKey; onChanged: () => void }) {
  const [agrees, setAgrees] = useState(false);
  const [limit, setLimit] = useState(stored.donation?.daily_limit?.toString() ?? "");
  const amount = numberOf(limit);
  const give = useMutation({
    meta: { done: "Provider key donated" },
    mutationFn: () =>
      donateKey({
        key_id: stored.id,
        consent: true,
        ...(amount === undefined ? {} : { daily_limit: amount }),
      }),
    onSuccess: onChanged,
  });
  const change = useMutation({
    meta: { done: "Donation changed" },
    mutationFn: changeDonation,
    onSuccess: onChanged,
  });
  const withdraw = useMutation({
    meta: { done: "Donation withdrawn" },
    mutationFn: withdrawKey,
    onSuccess: onChanged,
  });
  const field = (
    <Field
      label="Daily limit in USD"
      hint="What others may use within 24 hours, at list price. Empty means no bound."
    >
      {(id) => (
        <Input
          id={id}
          type="number"
          min="0"
          step="any"
          value={limit}
          onChange={(event) => setLimit(event.target.value)}
        />
      )}
    </Field>
  );
  if (stored.donation === null) {
    return (
      <Form action="Donate key" work={give} onSubmit={() => give.mutate()} disabled={!agrees}>
        <p>
          Every workspace without a key of its own for this provider may use it, where the service
          has none either. You pay the provider for it, and prompts of others pass through your
          account there.
        </p>
        {field}
        <Check
          label="I agree that others use this key at my expense."
          checked={agrees}
          onChange={setAgrees}
        />
      </Form>
    );
  }
  const { paused, pause_reason: reason, used_today: used } = stored.donation;
  return (
    <Form
      action="Save limit"
      work={change}
      onSubmit={() => change.mutate({ id: stored.id, daily_limit: amount ?? null })}
    >
      <p>
        {paused
          ? `Paused: ${reason === "credential" ? "the provider refused the key" : "by its owner"}.`
          : "In the pool."}{" "}
        {usd(used)} used within 24 hours.
      </p>
      {field}
      {withdraw.error === null ? null : <Problem error={withdraw.error} />}
      <Actions>
        <Button look="plain" onClick={() => change.mutate({ id: stored.id, paused: !paused })}>
          {paused ? "Resume donation" : "Pause donation"}
        </Button>
        <Button look="plain" onClick={() => withdraw.mutate(stored.id)}>
          Withdraw key
        </Button>
      </Actions>
    </Form>
  );
}
