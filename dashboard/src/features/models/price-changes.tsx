import { useQuery } from "@tanstack/react-query";
import { localTime, unitPrice, utc } from "../../lib/format.ts";
import { Card, Empty, Loaded } from "../../ui/parts.tsx";
import { Table } from "../../ui/table.tsx";
import { type PriceChange, pricesQuery } from "./api.ts";

/** The parts whose price is another one, each with its price before. */
const changedParts = (now: PriceChange, before: PriceChange): string[] =>
  [...new Set([...Object.keys(before.prices), ...Object.keys(now.prices)])]
    .filter((part) => now.prices[part] !== before.prices[part])
    .map(
      (part) =>
        `${part.replace("_per_1m", ", 1M").replaceAll("_", " ")}: ${unitPrice(before.prices[part])} to ${unitPrice(now.prices[part])}`,
    );

/** When the providers of a model changed their prices, the newest first. */
export function PriceChanges({ id }: { id: string }) {
  const prices = useQuery(pricesQuery(id));
  return (
    <Card title="Changes of prices" flush>
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
              caption="Changes of prices"
              columns={[
                {
                  head: "From",
                  cell: ({ now: { at } }) => (
                    <time dateTime={at} title={utc(at)}>
                      {localTime(at)}
                    </time>
                  ),
                },
                { head: "Provider", cell: ({ now }) => now.provider },
                {
                  head: "What changed",
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
