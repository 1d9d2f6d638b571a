import { useMutation, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { useScope } from "../../lib/session.ts";
import { PageHead } from "../../ui/page.tsx";
import { requestCost, usd } from "../../lib/format.ts";
import { Button } from "../../ui/button.tsx";
import { Card, Facts } from "../../ui/card.tsx";
import { Code } from "../../ui/copy.tsx";
import { Check, Field, Input, Select, TextArea } from "../../ui/fields.tsx";
import { Form } from "../../ui/form.tsx";
import { Empty, Problem } from "../../ui/loaded.tsx";
import { Status } from "../../ui/values.tsx";
import { Picker } from "../../ui/picker.tsx";
import { Table } from "../../ui/table.tsx";
import style from "../../ui/ui.module.css";
import { modelsQuery } from "../models/api.ts";
import { useModelChoices } from "../playground/model-choices.ts";
import { ProviderName, useProviderNames } from "../provider-keys/provider-names.tsx";
import { ProvidersField } from "../provider-keys/providers-field.tsx";
import { type Explanation, type Rules, explain, noRules, providerOf, savePreset } from "./api.ts";
import { OrderList } from "./order-list.tsx";

const sorts = [
  ["", "balanced by price and health"],
  ["price", "cheapest first"],
  ["throughput", "fastest output first"],
  ["latency", "quickest start first"],
] as const;
const sources = {
  platform: "this service's key",
  own_byok: "your own key",
  pool: "a donated key",
} as const;

function RulesForm({
  rules,
  providers,
  onChange,
}: {
  rules: Rules;
  providers: readonly string[];
  onChange: (rules: Rules) => void;
}) {
  const nameOf = useProviderNames();
  const set = (changes: Partial<Rules>): void => onChange({ ...rules, ...changes });
  const free = providers.filter((provider) => !rules.order.includes(provider));
  return (
    <div className={style.form}>
      <div className={style.grid}>
        <Field label="Order">
          {(id) => (
            <Select id={id} value={rules.sort} options={sorts} onChange={(sort) => set({ sort })} />
          )}
        </Field>
        <ProvidersField
          label="Only these providers"
          value={rules.only}
          onChange={(only) => set({ only })}
        />
        <ProvidersField
          label="Never these providers"
          value={rules.ignore}
          onChange={(ignore) => set({ ignore })}
        />
        <Field label="Highest input price, 1M tokens" hint="USD">
          {(id) => (
            <Input
              id={id}
              inputMode="decimal"
              value={rules.promptMax}
              onChange={(event) => set({ promptMax: event.target.value })}
            />
          )}
        </Field>
        <Field label="Highest output price, 1M tokens" hint="USD">
          {(id) => (
            <Input
              id={id}
              inputMode="decimal"
              value={rules.completionMax}
              onChange={(event) => set({ completionMax: event.target.value })}
            />
          )}
        </Field>
      </div>
      <div className={style.grid}>
        <Check
          label="Try others where the first fails"
          checked={rules.allowFallbacks}
          onChange={(allowFallbacks) => set({ allowFallbacks })}
        />
        <Check label="Zero retention only" checked={rules.zdr} onChange={(zdr) => set({ zdr })} />
        <Check
          label="None that collects data"
          checked={rules.denyCollection}
          onChange={(denyCollection) => set({ denyCollection })}
        />
        <Check
          label="Only those that support every parameter"
          checked={rules.requireParameters}
          onChange={(requireParameters) => set({ requireParameters })}
        />
      </div>
      <h2>Tried first, in this order</h2>
      {rules.order.length === 0 ? (
        <p className={style.hint}>
          No order of your own yet. Add a provider, then drag it, or press Alt with the arrow keys
          on its buttons.
        </p>
      ) : (
        <OrderList
          items={rules.order}
          label="Order of providers"
          nameOf={nameOf}
          onChange={(order) => set({ order })}
        />
      )}
      {free.length === 0 ? null : (
        <div className={style.actions}>
          {free.map((provider) => (
            <Button
              key={provider}
              look="plain"
              onClick={() => set({ order: [...rules.order, provider] })}
            >
              Add {nameOf(provider)}
            </Button>
          ))}
        </div>
      )}
    </div>
  );
}

function Answer({ explanation }: { explanation: Explanation }) {
  return (
    <>
      {explanation.error === null ? null : <Problem error={new Error(explanation.error.message)} />}
      <Card title="Providers in the order in which they would be asked" flush>
        {explanation.candidates.length === 0 ? (
          <Empty>No provider is left. Loosen a rule above.</Empty>
        ) : (
          <Table
            rows={explanation.candidates}
            rowKey={({ position }) => String(position)}
            caption="Candidates"
            columns={[
              { head: "Place", phone: "state", cell: ({ position }) => position + 1 },
              {
                head: "Provider",
                phone: "title",
                cell: ({ provider, upstream_model: model }) => (
                  <>
                    <div>
                      <ProviderName id={provider} />
                    </div>
                    <code>{model}</code>
                  </>
                ),
              },
              { head: "Why here", phone: "when", cell: ({ reason }) => reason },
              { head: "Paid with", cell: ({ credential_source: source }) => sources[source] },
              {
                head: "Estimated cost",
                number: true,
                phone: "figure",
                cell: ({ estimated_cost_usd: cost }) => requestCost(cost),
              },
            ]}
          />
        )}
      </Card>
      <Card title="Left out" flush>
        {explanation.left_out.length === 0 ? (
          <Empty>No provider was left out.</Empty>
        ) : (
          <Table
            rows={explanation.left_out}
            rowKey={({ provider, model, rule }) => `${provider} ${model} ${rule}`}
            caption="Left out"
            columns={[
              {
                head: "Provider",
                phone: "title",
                cell: ({ provider }) => <ProviderName id={provider} />,
              },
              {
                head: "Model",
                phone: "when",
                cell: ({ model }) => model,
              },
              { head: "Rule", phone: "note", cell: ({ rule }) => rule },
            ]}
          />
        )}
      </Card>
      <Card>
        <Facts
          rows={[
            ["May cost at most", usd(explanation.worst_case_usd)],
            ["Held while it runs", usd(explanation.hold_usd)],
          ]}
        />
      </Card>
    </>
  );
}

function SaveAsPreset({ model, rules }: { model: string; rules: Rules }) {
  const [name, setName] = useState("");
  const slug = name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "");
  const save = useMutation({
    mutationFn: () => savePreset({ slug, name, config: { model, provider: providerOf(rules) } }),
  });
  return (
    <Card title="Keep these rules">
      <Form
        look="plain"
        action="Save as preset"
        work={save}
        onSubmit={() => save.mutate()}
        disabled={slug === "" || model === ""}
      >
        <Field label="Name of the preset">
          {(id) => (
            <Input
              id={id}
              value={name}
              required
              maxLength={120}
              onChange={(event) => setName(event.target.value)}
            />
          )}
        </Field>
        {save.data === undefined ? null : (
          <p>
            <Status kind="good">saved</Status>{" "}
            <Link to="/presets/$slug" params={{ slug: save.data.slug }}>
              @preset/{save.data.slug}
            </Link>
          </p>
        )}
      </Form>
      <Code text={JSON.stringify({ provider: providerOf(rules) }, null, 2)} />
    </Card>
  );
}

/** Asks how a request would be routed before it is sent: who is left, who is not, and why. */
export function RoutingPage() {
  const mayWrite = useScope("write:presets");
  const { data: catalog } = useQuery(modelsQuery);
  const { groups, suggested } = useModelChoices();
  const [chosen, setModel] = useState("");
  const model = chosen || suggested;
  const [message, setMessage] = useState("Hello");
  const [outputMax, setOutputMax] = useState("");
  const [rules, setRules] = useState<Rules>(noRules);
  const record = catalog?.data.find(({ id }) => id === model);
  const ask = useMutation({
    mutationFn: () =>
      explain({
        model,
        messages: [{ role: "user", content: message }],
        provider: providerOf(rules),
        ...(outputMax === "" ? {} : { max_tokens: Number(outputMax) }),
      }),
  });
  const known = [
    ...new Set([
      ...(record?.providers ?? []),
      ...(ask.data?.candidates.map(({ provider }) => provider) ?? []),
    ]),
  ];
  return (
    <>
      <PageHead title="Routing" />
      <Card title="Request">
        <Form action="Show the order" work={ask} onSubmit={() => ask.mutate()}>
          <div className={style.grid}>
            <Field label="Model">
              {() => (
                <Picker
                  label="Model"
                  value={model}
                  shown={model === "" ? "Choose a model" : model}
                  groups={groups}
                  onChange={setModel}
                  search="Search models"
                  none="No model has that in its name."
                />
              )}
            </Field>
            <Field label="Output cap in tokens">
              {(id) => (
                <Input
                  id={id}
                  inputMode="numeric"
                  value={outputMax}
                  onChange={(event) => setOutputMax(event.target.value)}
                />
              )}
            </Field>
          </div>
          <Field label="Message">
            {(id) => (
              <TextArea
                id={id}
                value={message}
                required
                onChange={(event) => setMessage(event.target.value)}
              />
            )}
          </Field>
          <RulesForm rules={rules} providers={known} onChange={setRules} />
        </Form>
      </Card>
      {ask.data === undefined ? null : <Answer explanation={ask.data} />}
      {mayWrite ? <SaveAsPreset model={model} rules={rules} /> : null}
    </>
  );
}
