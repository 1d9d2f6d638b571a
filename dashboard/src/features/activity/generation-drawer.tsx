import { useQuery } from "@tanstack/react-query";
import { count, duration, localTime, requestCost, utc } from "../../lib/format.ts";
import { Code, Facts, Loaded } from "../../ui/parts.tsx";
import { Drawer } from "../../ui/overlay.tsx";
import { Table } from "../../ui/table.tsx";
import { explanationQuery } from "./api.ts";
import { GenerationStatus } from "./generations-table.tsx";
import { Waterfall } from "./waterfall.tsx";

/** One request: what was tried, what it cost and why. */
export function GenerationDrawer({ id, onClose }: { id: string | undefined; onClose: () => void }) {
  return (
    <Drawer title="Request" open={id !== undefined} onClose={onClose}>
      {id === undefined ? null : <GenerationDetails id={id} />}
    </Drawer>
  );
}

function GenerationDetails({ id }: { id: string }) {
  const query = useQuery(explanationQuery(id));
  return (
    <Loaded query={query} height={400}>
      {(explanation) => {
        const { generation, lines, explanation: words } = explanation;
        return (
          <>
            <Facts rows={[
              ["Id", <code key="id">{id}</code>], ["State", <GenerationStatus key="state" status={generation.status} />], ["Model", generation.model],
              ["Provider", generation.provider_name ?? "–"], ["Charged", requestCost(explanation.charged_usd)],
              ["Tokens in / out", `${count(generation.tokens_prompt)} / ${count(generation.tokens_completion)}`],
              ["First token", duration(generation.latency)], ["Total", duration(generation.total_time)], ["Finish", generation.finish_reason ?? "–"],
              ["Time", <time key="time" title={utc(generation.created_at)}>{localTime(generation.created_at)}</time>],
            ]} />
            <h2>Attempts</h2>
            <Waterfall attempts={generation.attempts} />
            {lines.length === 0 ? null : (
              <>
                <h2>Price</h2>
                <Table rows={lines} rowKey={({ part }) => part} caption="Price by part" columns={[
                  { head: "Part", cell: ({ part }) => part },
                  { head: "Quantity", number: true, cell: ({ quantity }) => quantity },
                  { head: "USD per million", number: true, cell: ({ usd_per_million: price }) => price ?? "–" },
                  { head: "Amount", number: true, cell: ({ amount_usd: amount }) => requestCost(amount) },
                ]} />
              </>
            )}
            <h2>In words</h2>
            <ul>{words.map((sentence) => <li key={sentence}>{sentence}</li>)}</ul>
            <h2>JSON</h2>
            <Code text={JSON.stringify(explanation, null, 2)} />
          </>
        );
      }}
    </Loaded>
  );
}

