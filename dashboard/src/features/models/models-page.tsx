import { useQuery } from "@tanstack/react-query";
import { Link, getRouteApi } from "@tanstack/react-router";
import { useDeferredValue, useState, type ReactNode } from "react";
import { PageHead } from "../../ui/page.tsx";
import { count, unitPrice } from "../../lib/format.ts";
import { Actions, Button, Card, Empty, Input, Loaded, Select } from "../../ui/parts.tsx";
import { Table } from "../../ui/table.tsx";
import style from "../../ui/ui.module.css";
import {
  modelMetricsQuery,
  modelsQuery,
  reachableQuery,
  type Model,
  type ModelMetrics,
} from "./api.ts";

/** Models that stand side by side at most. */
const comparedMax = 4;

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
  onRemove,
}: {
  models: readonly Model[];
  metrics: ReadonlyMap<string, ModelMetrics>;
  onRemove: (id: string) => void;
}) {
  const lines: readonly (readonly [string, (model: Model) => ReactNode])[] = [
    ["Maker", ({ provider }) => provider],
    ["Input, 1M tokens", ({ pricing }) => unitPrice(pricing.input_per_1m)],
    ["Output, 1M tokens", ({ pricing }) => unitPrice(pricing.output_per_1m)],
    ["Context", ({ context_length: tokens }) => `${count(tokens)} tokens`],
    ["Largest answer", (model) => count(largestAnswer(model))],
    ["Capabilities", ({ capabilities }) => capabilities.join(", ")],
    ["Providers", ({ providers }) => providers.join(", ")],
    ["Keep nothing", zeroRetention],
    ["Requests this week", ({ id }) => count(metrics.get(id)?.weekly_requests ?? 0)],
  ];
  return (
    <Card title="Compared" flush>
      <Table
        rows={lines}
        rowKey={([name]) => name}
        caption="Compared models"
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
            Take {id} out
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

const capabilities = [
  ["", "Any capability"],
  ["vision", "Vision"],
  ["function-calling", "Tools"],
  ["reasoning", "Reasoning"],
  ["structured-output", "Structured output"],
] as const;

const reaches = [
  ["", "Every model"],
  ["reachable", "What this workspace reaches"],
] as const;

function matches(model: Model, { q, group }: { q: string; group: string }): boolean {
  const words = q
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "");
  const text = `${model.id} ${model.display_name} ${model.providers.join(" ")}`.toLowerCase();
  return (
    words.every((word) => text.includes(word)) &&
    (group === "" || model.capabilities.includes(group))
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
      aria-label={`Compare ${id}`}
      checked={isIn}
      disabled={!isIn && compared.length >= comparedMax}
      onChange={() => onChange(isIn ? compared.filter((each) => each !== id) : [...compared, id])}
    />
  );
}

/** The catalog, filtered as one types. */
export function ModelsPage() {
  const { q = "", group = "", status = "", id: chosen } = route.useSearch();
  const navigate = route.useNavigate();
  const models = useQuery(status === "reachable" ? reachableQuery : modelsQuery);
  const metrics = useQuery(modelMetricsQuery);
  const byModel = new Map<string, ModelMetrics>(
    (metrics.data?.data ?? []).map((line) => [line.model, line]),
  );
  const compared = chosen?.split(",").slice(0, comparedMax) ?? [];
  const compare = (ids: readonly string[]): void => set({ id: ids.join(",") || undefined });
  const wanted = useDeferredValue(q);
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
            label="Capability"
            value={group}
            options={capabilities}
            onChange={(value) => set({ group: value || undefined })}
          />
          <Select
            label="Which"
            value={status}
            options={reaches}
            onChange={(value) => set({ status: value || undefined })}
          />
        </Actions>
      </Card>
      {compared.length === 0 ? null : (
        <Compare
          models={(models.data?.data ?? []).filter(({ id }) => compared.includes(id))}
          metrics={byModel}
          onRemove={(id) => compare(compared.filter((each) => each !== id))}
        />
      )}
      <Card flush>
        <Loaded query={models} height={480}>
          {({ data }) => {
            const rows = data.filter((model) => matches(model, { q: wanted, group }));
            if (rows.length === 0)
              return (
                <Empty
                  action={
                    <Button onClick={() => void navigate({ search: {} })}>Clear filters</Button>
                  }
                >
                  Nothing matches.
                </Empty>
              );
            return (
              <>
                <Table
                  rows={rows.slice(0, shown)}
                  rowKey={({ id }) => id}
                  caption={`${rows.length} models`}
                  columns={[
                    {
                      head: "Compare",
                      cell: ({ id }) => (
                        <CompareBox id={id} compared={compared} onChange={compare} />
                      ),
                    },
                    {
                      head: "Model",
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
                            <div className="mono">{id}</div>
                          </>
                        );
                      },
                    },
                    { head: "Providers", cell: ({ providers }) => providers.join(", ") },
                    {
                      head: "Context",
                      number: true,
                      cell: ({ context_length: tokens }) => count(tokens),
                    },
                    {
                      head: "Rank this week",
                      number: true,
                      cell: ({ id }) => byModel.get(id)?.weekly_rank ?? "–",
                    },
                    {
                      head: "Input, 1M",
                      number: true,
                      cell: ({ pricing }) =>
                        pricing.billing === "byok" ? "own key" : unitPrice(pricing.input_per_1m),
                    },
                    {
                      head: "Output, 1M",
                      number: true,
                      cell: ({ pricing }) =>
                        pricing.billing === "byok" ? "own key" : unitPrice(pricing.output_per_1m),
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
