import { useQuery } from "@tanstack/react-query";
import { Link, getRouteApi } from "@tanstack/react-router";
import { PageHead } from "../../ui/page.tsx";
import { count, unitPrice } from "../../lib/format.ts";
import { Card, Code, Empty, Facts, Loaded } from "../../ui/parts.tsx";
import { Table } from "../../ui/table.tsx";
import { modelQuery, routePreviewQuery } from "./api.ts";
import { ModelFigures } from "./model-figures.tsx";
import { PriceChanges } from "./price-changes.tsx";

const route = getRouteApi("/models/$owner/$model");

/**
 * One model: its providers with prices and limits, and the order in which they would be tried now.
 */
export function ModelPage() {
  const { owner, model: name } = route.useParams();
  const id = `${owner}/${name}`;
  const model = useQuery(modelQuery(id));
  const preview = useQuery(routePreviewQuery(id));
  return (
    <>
      <PageHead title={model.data?.display_name ?? id}>
        <Link to="/playground" search={{ model: id }}>
          Try it
        </Link>
      </PageHead>
      <Loaded query={model} height={320}>
        {(data) => (
          <>
            <Card>
              <Facts
                rows={[
                  ["Id", <code key="id">{id}</code>],
                  ["Maker", data.provider],
                  ["Context", `${count(data.context_length)} tokens`],
                  ["Capabilities", data.capabilities.join(", ")],
                  [
                    "Parameters",
                    (data.supported_parameters ?? []).length === 0
                      ? "any: no provider lists its own"
                      : data.supported_parameters?.join(", "),
                  ],
                  [
                    "Reasoning",
                    data.reasoning === undefined ? "–" : data.reasoning.levels.join(", "),
                  ],
                ]}
              />
            </Card>
            <Card title="Providers" flush>
              <Table
                rows={data.per_upstream ?? []}
                rowKey={({ provider }) => provider}
                caption="Providers"
                columns={[
                  { head: "Provider", cell: ({ provider }) => provider },
                  {
                    head: "Input, 1M",
                    number: true,
                    cell: ({ pricing }) => unitPrice(pricing?.input_per_1m),
                  },
                  {
                    head: "Output, 1M",
                    number: true,
                    cell: ({ pricing }) => unitPrice(pricing?.output_per_1m),
                  },
                  {
                    head: "Largest answer",
                    number: true,
                    cell: ({ context }) => count(context?.max_completion_tokens),
                  },
                  {
                    head: "Zero retention",
                    cell: ({ data_policy: policy }) => (policy?.zdr ? "yes" : "no"),
                  },
                  {
                    head: "Collects data",
                    cell: ({ data_policy: policy }) =>
                      policy?.data_collection === undefined
                        ? "not said"
                        : policy.data_collection === "deny"
                          ? "no"
                          : "yes",
                  },
                ]}
              />
            </Card>
            <Card title="Order at this moment" flush>
              <Loaded query={preview} height={120}>
                {({ data: steps }) =>
                  steps.length === 0 ? (
                    <Empty>No provider can serve it now.</Empty>
                  ) : (
                    <Table
                      rows={steps}
                      rowKey={({ position }) => String(position)}
                      caption="Order of providers"
                      columns={[
                        { head: "Place", cell: ({ position }) => position + 1 },
                        { head: "Provider", cell: ({ provider }) => provider },
                        { head: "Why", cell: ({ reason }) => reason },
                      ]}
                    />
                  )
                }
              </Loaded>
            </Card>
            <PriceChanges id={id} />
            <ModelFigures id={id} />
            <Card title="Call it">
              <Code
                text={`curl ${location.origin}/api/v1/chat/completions \\\n  -H "Authorization: Bearer $SWITCHYARD_KEY" -H "Content-Type: application/json" \\\n  -d '{"model":"${id}","messages":[{"role":"user","content":"Hello"}]}'`}
              />
            </Card>
          </>
        )}
      </Loaded>
    </>
  );
}
