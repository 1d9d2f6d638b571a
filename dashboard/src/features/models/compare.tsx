import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { count, unitPrice } from "../../lib/format.ts";
import { Actions, Button, Card } from "../../ui/parts.tsx";
import { Table } from "../../ui/table.tsx";
import type { Model, ModelMetrics } from "./api.ts";

/** Models that stand side by side at most. */
export const comparedMax = 4;

/** Says how many providers of a model keep nothing. */
const zeroRetention = ({ per_upstream: routes = [] }: Model): string =>
  `${routes.filter(({ data_policy: policy }) => policy?.zdr).length} of ${routes.length}`;

const largestAnswer = ({ per_upstream: routes = [] }: Model): number | undefined => {
  const caps = routes.flatMap(({ context }) => context?.max_completion_tokens ?? []);
  return caps.length === 0 ? undefined : Math.max(...caps);
};

/** Up to four models side by side, one row a property. */
export function Compare({
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
      <Actions>
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
      </Actions>
    </Card>
  );
}
