import { useQuery } from "@tanstack/react-query";
import { Link, getRouteApi } from "@tanstack/react-router";
import { useDeferredValue, useState, type ReactNode } from "react";
import { PageHead } from "../../ui/page.tsx";
import { count, countOf, unitPrice } from "../../lib/format.ts";
import { wordOf } from "../../lib/words.ts";
import { Actions, Button } from "../../ui/button.tsx";
import { Card } from "../../ui/card.tsx";
import { Input, Select } from "../../ui/fields.tsx";
import { Awaiting, Empty, Loaded } from "../../ui/loaded.tsx";
import { Table } from "../../ui/table.tsx";
import style from "../../ui/ui.module.css";
import own from "./models.module.css";
import { providersQuery } from "../provider-keys/api.ts";
import { useProviderNames } from "../provider-keys/provider-names.tsx";
import {
  modelMetricsQuery,
  modelsQuery,
  reachableQuery,
  type Model,
  type ModelMetrics,
} from "./api.ts";

/** Models that stand side by side at most. */
const comparedMax = 4;

/** The prices of a million tokens in and out. */
function pricesOf({ pricing }: Model): string {
  const { billing, input_per_1m: input, output_per_1m: output } = pricing;
  if (billing === "byok") return "own key";
  if (input === 0 && output === 0) return "free";
  return `${unitPrice(input)} / ${unitPrice(output)}`;
}

/** Says how many providers of a model keep nothing. */
const zeroRetention = ({ per_upstream: routes = [] }: Model): string =>
  `${routes.filter(({ data_policy: policy }) => policy?.zdr).length} of ${routes.length}`;

const largestAnswer = ({ per_upstream: routes = [] }: Model): number | undefined => {
  const caps = routes.flatMap(({ context }) => context?.max_completion_tokens ?? []);
  return caps.length === 0 ? undefined : Math.max(...caps);
};

/** Up to four models side by side, one row a property. */
function Compare({
  models,
  metrics,
  nameOf,
  onRemove,
}: {
  models: readonly Model[];
  metrics: ReadonlyMap<string, ModelMetrics>;
  nameOf: (provider: string) => string;
  onRemove: (id: string) => void;
}) {
  const lines: readonly (readonly [string, (model: Model) => ReactNode])[] = [
    ["Maker", ({ provider }) => provider],
    ["Input, 1M tokens", ({ pricing }) => unitPrice(pricing.input_per_1m)],
    ["Output, 1M tokens", ({ pricing }) => unitPrice(pricing.output_per_1m)],
    ["Context", ({ context_length: tokens }) => `${count(tokens)} tokens`],
    ["Max output", (model) => count(largestAnswer(model))],
    ["Capabilities", ({ capabilities }) => capabilities.map(wordOf).join(", ")],
    ["Providers", ({ providers }) => providers.map(nameOf).join(", ")],
    ["Zero retention", zeroRetention],
    ["Requests this week", ({ id }) => count(metrics.get(id)?.weekly_requests ?? 0)],
  ];
  return (
    <Card title="Compared" flush>
      <Table
        rows={lines}
        rowKey={([name]) => name}
        caption="Compared models"
        compact
        columns={[
          { head: "Property", cell: ([name]) => name },
          ...models.map((model) => ({
            head: model.id,
            cell: ([, cell]: (typeof lines)[number]) => cell(model),
          })),
        ]}
      />
      <div className={style.filters}>
        {models.map(({ id }) => (
          <Button key={id} look="plain" onClick={() => onRemove(id)}>
            Remove {id}
          </Button>
        ))}
        {models.map(({ id }) => (
          <Link key={id} to="/playground" search={{ model: id }}>
            Try {id}
          </Link>
        ))}
      </div>
    </Card>
  );
}

const route = getRouteApi("/models");
const pageSize = 100;

/** What a model has to be able to, as chips of which several may be chosen. */
const capabilities = [
  ["vision", "Pictures"],
  ["function-calling", "Tools"],
  ["reasoning", "Thinking"],
  ["structured-output", "JSON by schema"],
  ["embeddings", "Embeddings"],
] as const;

const reaches = [
  ["", "What this workspace reaches"],
  ["all", "Every model"],
] as const;

const orders = [
  ["", "Most used first"],
  ["price", "Cheapest first"],
  ["context", "Longest context first"],
  ["speed", "Fastest first"],
  ["newest", "Newest first"],
] as const;

/** The median tokens a second of the fastest provider of a model. */
const speedOf = (metrics: ModelMetrics | undefined): number =>
  Math.max(0, ...(metrics?.providers ?? []).map(({ throughput_tps: speed }) => speed?.p50 ?? 0));

/** A price to compare by: of four tokens of input for each of output. */
const priceOf = ({ pricing: { input_per_1m: input, output_per_1m: output } }: Model): number =>
  input === undefined && output === undefined
    ? Number.POSITIVE_INFINITY
    : 4 * (input ?? 0) + (output ?? 0);

/** What models are ordered by: the largest first. */
function weightOf(
  order: string,
  metrics: ReadonlyMap<string, ModelMetrics>,
): (model: Model) => number {
  if (order === "price") return (model) => -priceOf(model);
  if (order === "context") return ({ context_length: context }) => context;
  if (order === "newest") return ({ created = 0 }) => created;
  if (order === "speed") return ({ id }) => speedOf(metrics.get(id));
  return ({ id }) => metrics.get(id)?.weekly_requests ?? 0;
}

const providersShown = 3;

/** The first providers of a model, and how many there are beside them. */
const providersText = (providers: readonly string[]): string =>
  providers.length <= providersShown + 1
    ? providers.join(", ")
    : `${providers.slice(0, providersShown).join(", ")} and ${providers.length - providersShown} more`;

/** Capabilities as chips: a model has to have all that are chosen. */
function Chips({
  chosen,
  onChange,
}: {
  chosen: readonly string[];
  onChange: (chosen: readonly string[]) => void;
}) {
  return (
    <fieldset className={own["chips"]} aria-label="Capabilities">
      {capabilities.map(([name, label]) => {
        const isOn = chosen.includes(name);
        return (
          <Button
            key={name}
            look="plain"
            aria-pressed={isOn}
            onClick={() =>
              onChange(isOn ? chosen.filter((each) => each !== name) : [...chosen, name])
            }
          >
            {label}
          </Button>
        );
      })}
    </fieldset>
  );
}

function matches(
  model: Model,
  {
    q,
    wanted,
    nameOf,
  }: { q: string; wanted: readonly string[]; nameOf: (provider: string) => string },
): boolean {
  const words = q
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "");
  const providers = model.providers.map((id) => `${id} ${nameOf(id)}`).join(" ");
  const text = `${model.id} ${model.display_name} ${providers}`.toLowerCase();
  return (
    words.every((word) => text.includes(word)) &&
    wanted.every((capability) => model.capabilities.includes(capability))
  );
}

/** One model of the list, which may be put beside others. */
function CompareBox({
  id,
  compared,
  onChange,
}: {
  id: string;
  compared: readonly string[];
  onChange: (ids: readonly string[]) => void;
}) {
  const isIn = compared.includes(id);
  return (
    <input
      type="checkbox"
      className={style.box}
      aria-label={`Compare ${id}`}
      checked={isIn}
      disabled={!isIn && compared.length >= comparedMax}
      onChange={() => onChange(isIn ? compared.filter((each) => each !== id) : [...compared, id])}
    />
  );
}

/** The catalog, filtered as one types. */
export function ModelsPage() {
  const { q = "", group = "", status = "", sort = "", id: chosen } = route.useSearch();
  const navigate = route.useNavigate();
  const models = useQuery(status === "all" ? modelsQuery : reachableQuery);
  const metrics = useQuery(modelMetricsQuery);
  // Names that came after the list would move it.
  const providers = useQuery(providersQuery);
  const nameOf = useProviderNames();
  const byModel = new Map<string, ModelMetrics>(
    (metrics.data?.data ?? []).map((line) => [line.model, line]),
  );
  const compared = chosen?.split(",").slice(0, comparedMax) ?? [];
  const compare = (ids: readonly string[]): void => set({ id: ids.join(",") || undefined });
  const words = useDeferredValue(q);
  const wanted = group.split(",").filter((each) => each !== "");
  const weight = weightOf(sort, byModel);
  const [shown, setShown] = useState(pageSize);
  const set = (change: Record<string, string | undefined>): void =>
    void navigate({ search: (was) => ({ ...was, ...change }), replace: true });
  return (
    <>
      <PageHead title="Models" />
      <Card>
        <Actions>
          <Input
            aria-label="Search"
            placeholder="Search by name, maker or provider"
            value={q}
            onChange={(event) => set({ q: event.target.value || undefined })}
          />
          <Select
            label="Order"
            value={sort}
            options={orders}
            onChange={(value) => set({ sort: value || undefined })}
          />
          <Select
            label="Which"
            value={status}
            options={reaches}
            onChange={(value) => set({ status: value || undefined })}
          />
        </Actions>
        <Chips chosen={wanted} onChange={(next) => set({ group: next.join(",") || undefined })} />
      </Card>
      <Awaiting queries={compared.length === 0 ? [metrics] : [models, metrics, providers]} />
      {compared.length === 0 ? null : (
        <Compare
          models={(models.data?.data ?? []).filter(({ id }) => compared.includes(id))}
          metrics={byModel}
          nameOf={nameOf}
          onRemove={(id) => compare(compared.filter((each) => each !== id))}
        />
      )}
      <Card flush>
        <Loaded query={providers.isPending ? { ...models, data: undefined } : models} height={480}>
          {({ data }) => {
            const rows = data
              .filter((model) => matches(model, { q: words, wanted, nameOf }))
              .toSorted((one, other) => weight(other) - weight(one));
            if (rows.length === 0)
              return (
                <Empty
                  action={
                    <Button onClick={() => void navigate({ search: { status: "all" } })}>
                      Look at every model
                    </Button>
                  }
                >
                  Nothing that this workspace reaches matches.
                </Empty>
              );
            return (
              <>
                <Table
                  rows={rows.slice(0, shown)}
                  rowKey={({ id }) => id}
                  caption={countOf(rows.length, "model")}
                  columns={[
                    {
                      head: "Compare",
                      phone: "actions",
                      cell: ({ id }) => (
                        <CompareBox id={id} compared={compared} onChange={compare} />
                      ),
                    },
                    {
                      head: "Model",
                      phone: "title",
                      cell: ({ id, display_name: name }) => {
                        const [owner = "", ...rest] = id.split("/");
                        return (
                          <>
                            <Link
                              to="/models/$owner/$model"
                              params={{ owner, model: rest.join("/") }}
                            >
                              {name}
                            </Link>
                            {name === id ? null : <code>{id}</code>}
                          </>
                        );
                      },
                    },
                    {
                      head: "Providers",
                      cell: ({ providers }) => (
                        <span title={providers.join(", ")}>
                          {providersText(providers.map(nameOf))}
                        </span>
                      ),
                    },
                    {
                      head: "Context",
                      number: true,
                      phone: "when",
                      cell: ({ context_length: tokens }) =>
                        tokens === 0 ? "–" : `${count(tokens)} tokens`,
                    },
                    {
                      head: "Rank this week",
                      wide: true,
                      number: true,
                      cell: ({ id }) => byModel.get(id)?.weekly_rank ?? "–",
                    },
                    {
                      head: "Tokens a second",
                      wide: true,
                      number: true,
                      cell: ({ id }) => {
                        const speed = speedOf(byModel.get(id));
                        return speed === 0 ? "–" : speed.toFixed(0);
                      },
                    },
                    {
                      head: "Input / output, 1M",
                      number: true,
                      phone: "figure",
                      cell: pricesOf,
                    },
                  ]}
                />
                {rows.length > shown ? (
                  <Empty
                    action={
                      <Button look="plain" onClick={() => setShown(shown + pageSize)}>
                        Show more
                      </Button>
                    }
                  >
                    {shown} of {rows.length}
                  </Empty>
                ) : null}
              </>
            );
          }}
        </Loaded>
      </Card>
    </>
  );
}
