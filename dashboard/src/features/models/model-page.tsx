import { ProviderName } from "../provider-keys/provider-names.tsx";
import { zoneName } from "../../lib/time.ts";
import { useQuery } from "@tanstack/react-query";
import { Link, getRouteApi } from "@tanstack/react-router";
import { PageHead } from "../../ui/page.tsx";
import { count, unitPrice } from "../../lib/format.ts";
import { wordOf } from "../../lib/words.ts";
import { linkLook } from "../../ui/button.tsx";
import { Card, Facts } from "../../ui/card.tsx";
import { Code, Id } from "../../ui/copy.tsx";
import { Empty, Loaded } from "../../ui/loaded.tsx";
import { Moment } from "../../ui/values.tsx";
import { Table } from "../../ui/table.tsx";
import { modelQuery, routePreviewQuery, pricesQuery, type PriceChange } from "./api.ts";
import { ModelFigures } from "./model-figures.tsx";

/** The parts whose price is another one, each with its price before. */
const changedParts = (now: PriceChange, before: PriceChange): string[] =>
  [...new Set([...Object.keys(before.prices), ...Object.keys(now.prices)])]
    .filter((part) => now.prices[part] !== before.prices[part])
    .map(
      (part) =>
        `${part.replace("_per_1m", ", 1M").replaceAll("_", " ")}: ${unitPrice(before.prices[part])} to ${unitPrice(now.prices[part])}`,
    );

/** When the providers of a model changed their prices, the newest first. */
function PriceChanges({ id }: { id: string }) {
  const prices = useQuery(pricesQuery(id));
  return (
    <Card title="Price changes" flush>
      <Loaded query={prices} height={120}>
        {({ data }) => {
          const before = ({ provider, model }: PriceChange, index: number) =>
            data
              .slice(index + 1)
              .find((each) => each.provider === provider && each.model === model);
          const changes = data.flatMap((now, index) => {
            const earlier = before(now, index);
            return earlier === undefined ? [] : [{ now, earlier }];
          });
          return changes.length === 0 ? (
            <Empty>No price has changed since this gateway knows the model.</Empty>
          ) : (
            <Table
              rows={changes}
              rowKey={({ now }) => `${now.model} ${now.provider} ${now.at}`}
              caption="Price changes"
              columns={[
                {
                  head: `From, ${zoneName()}`,
                  phone: "when",
                  cell: ({ now: { at } }) => <Moment at={at} />,
                },
                {
                  head: "Provider",
                  phone: "title",
                  cell: ({ now }) => <ProviderName id={now.provider} />,
                },
                {
                  head: "What changed",
                  phone: "note",
                  cell: ({ now, earlier }) => (
                    <ul>
                      {changedParts(now, earlier).map((line) => (
                        <li key={line}>{line}</li>
                      ))}
                    </ul>
                  ),
                },
              ]}
            />
          );
        }}
      </Loaded>
    </Card>
  );
}

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
      <PageHead title={model.data?.display_name ?? id} within={<Link to="/models">Models</Link>}>
        <Link to="/playground" search={{ model: id }} className={linkLook}>
          Try it
        </Link>
      </PageHead>
      <Loaded query={model} height={320}>
        {(data) => (
          <>
            <Card>
              <Facts
                rows={[
                  ["Id", <Id key="id">{id}</Id>],
                  ["Maker", data.provider],
                  ["Context", `${count(data.context_length)} tokens`],
                  ["Capabilities", data.capabilities.map(wordOf).join(", ")],
                  [
                    "Parameters",
                    (data.supported_parameters ?? []).length === 0
                      ? "not listed"
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
                  {
                    head: "Provider",
                    phone: "title",
                    cell: ({ provider }) => <ProviderName id={provider} />,
                  },
                  {
                    head: "Input / output, 1M",
                    number: true,
                    phone: "figure",
                    cell: ({ pricing }) =>
                      `${unitPrice(pricing?.input_per_1m)} / ${unitPrice(pricing?.output_per_1m)}`,
                  },
                  {
                    head: "Max output",
                    number: true,
                    cell: ({ context }) => count(context?.max_completion_tokens),
                  },
                  {
                    head: "Retention",
                    phone: "when",
                    cell: ({ data_policy: policy }) =>
                      policy?.zdr ? "keeps nothing" : "may keep requests",
                  },
                  {
                    head: "Collects data",
                    cell: ({ data_policy: policy }) =>
                      policy?.data_collection === undefined
                        ? "not stated"
                        : policy.data_collection === "deny"
                          ? "no"
                          : "yes",
                  },
                ]}
              />
            </Card>
            <Card title="Order of providers now" flush>
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
                        {
                          head: "Place",
                          phone: "figure",
                          unit: "in order",
                          cell: ({ position }) => position + 1,
                        },
                        {
                          head: "Provider",
                          phone: "title",
                          cell: ({ provider }) => <ProviderName id={provider} />,
                        },
                        { head: "Why", phone: "when", cell: ({ reason }) => reason },
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
