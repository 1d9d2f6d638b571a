import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { duration } from "../../lib/format.ts";
import { Button } from "../../ui/button.tsx";
import { Field, Input, Select, numberOf } from "../../ui/fields.tsx";
import { Form } from "../../ui/form.tsx";
import { Problem } from "../../ui/loaded.tsx";
import { Status } from "../../ui/values.tsx";
import {
  type KeyTest,
  type ProviderKey,
  changeProviderKey,
  createProviderKey,
  providersQuery,
  testNewKey,
} from "./api.ts";

const resets = [
  ["", "for as long as the key is here"],
  ["daily", "24 hours, rolling"],
  ["weekly", "7 days, rolling"],
  ["monthly", "30 days, rolling"],
] as const;
const outcomes = { accepted: "good", refused: "bad", unknown: "warning" } as const;

/** What a provider said to a key. */
export function TestResult({
  result: { outcome, message, reason, latency_ms: latency },
}: {
  result: KeyTest;
}) {
  return (
    <p role="status">
      <Status kind={outcomes[outcome]}>{outcome}</Status> {message}{" "}
      {reason === null ? "" : `It said: “${reason}” `}({duration(latency)})
    </p>
  );
}

/** Adds a key, or changes one; a new secret can be tested before it is saved. */
export function ProviderKeyForm({
  stored,
  onSaved,
}: {
  stored?: ProviderKey | undefined;
  onSaved: () => void;
}) {
  const providers = useQuery(providersQuery);
  const [provider, setProvider] = useState(stored?.provider_id ?? "");
  const [secret, setSecret] = useState("");
  const [label, setLabel] = useState(stored?.label ?? "");
  const [limit, setLimit] = useState(
    stored?.quota === null || stored === undefined ? "" : String(stored.quota.limit),
  );
  const [reset, setReset] = useState<(typeof resets)[number][0]>(stored?.quota?.reset ?? "");
  const test = useMutation({
    mutationFn: () => testNewKey({ provider_id: provider, api_key: secret }),
  });
  const save = useMutation({
    meta: { done: "Provider key saved" },
    mutationFn: () => {
      const amount = numberOf(limit);
      const quota =
        amount === undefined ? null : { limit: amount, reset: reset === "" ? null : reset };
      const common = {
        quota,
        ...(label === "" ? {} : { label }),
      };
      return stored === undefined
        ? createProviderKey({
            ...common,
            api_key: secret,
            provider_id: provider,
            source: "dashboard",
          })
        : changeProviderKey({
            ...common,
            ...(secret === "" ? {} : { api_key: secret }),
            id: stored.id,
          });
    },
    onSuccess: onSaved,
  });
  const choices = (providers.data?.data ?? []).map(({ id, name }) => [id, name] as const);
  return (
    <Form
      action={stored === undefined ? "Add provider key" : "Save provider key"}
      work={save}
      onSubmit={() => save.mutate()}
      more={
        secret === "" || provider === "" ? null : (
          <Button look="plain" disabled={test.isPending} onClick={() => test.mutate()}>
            Test key
          </Button>
        )
      }
    >
      {stored !== undefined ? null : (
        <Field param="provider_id" label="Provider">
          {(id) => (
            <Select
              id={id}
              value={provider}
              options={[["", "Choose a provider"], ...choices]}
              onChange={setProvider}
            />
          )}
        </Field>
      )}
      <Field
        param="api_key"
        label={stored === undefined ? "Key" : "New key"}
        hint={
          stored === undefined
            ? "It is stored encrypted and never shown again."
            : "Replaces the one that is stored. Empty keeps it."
        }
      >
        {(id) => (
          <Input
            id={id}
            type="password"
            autoComplete="off"
            required={stored === undefined}
            minLength={12}
            value={secret}
            onChange={(event) => {
              setSecret(event.target.value);
              test.reset();
            }}
          />
        )}
      </Field>
      <Field param="label" label="Label">
        {(id) => (
          <Input
            id={id}
            value={label}
            maxLength={200}
            onChange={(event) => setLabel(event.target.value)}
          />
        )}
      </Field>
      <Field param="quota" label="Quota in USD" hint="At list price. Empty means no bound.">
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
      {limit === "" ? null : (
        <Field label="The quota is for">
          {(id) => <Select id={id} value={reset} options={resets} onChange={setReset} />}
        </Field>
      )}
      {test.data === undefined ? null : <TestResult result={test.data} />}
      {test.error === null ? null : <Problem error={test.error} />}
    </Form>
  );
}
