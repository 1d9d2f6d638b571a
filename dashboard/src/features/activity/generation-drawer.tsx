import { useMutation, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useEffect } from "react";
import { useScope } from "../../lib/session.ts";
import { count, duration, localTime, requestCost, utc } from "../../lib/format.ts";
import { Drawer } from "../../ui/overlay.tsx";
import { Actions, Button, Code, Facts, Loaded, Problem } from "../../ui/parts.tsx";
import { Table } from "../../ui/table.tsx";
import {
  blockProvider,
  explanationQuery,
  type Explanation,
  type GenerationDetails,
} from "./api.ts";
import { GenerationStatus } from "./generations-table.tsx";
import { KeptContent } from "./kept-content.tsx";

type Attempts = GenerationDetails["attempts"];

const width = 560;
const row = 40;

/** Attempts one after the other, as bars on one time scale. */
function Waterfall({ attempts }: { attempts: Attempts }) {
  const total = Math.max(
    1,
    attempts.reduce((sum, attempt) => sum + attempt.duration_ms, 0),
  );
  let start = 0;
  return (
    <svg
      viewBox={`0 0 ${width} ${attempts.length * row}`}
      role="img"
      aria-label={`${attempts.length} attempts`}
    >
      {attempts.map((attempt, index) => {
        const x = (start / total) * width;
        start += attempt.duration_ms;
        const served = attempt.outcome === "served";
        return (
          <g key={`${attempt.provider} ${index}`} transform={`translate(0 ${index * row})`}>
            <text x="0" y="14" fontSize="13" fill="var(--text)">
              {attempt.provider}
            </text>
            <text x={width} y="14" fontSize="12" fill="var(--second)" textAnchor="end">
              {duration(attempt.duration_ms)}
              {attempt.reason ? `, ${attempt.reason}` : served ? ", served" : ""}
            </text>
            <rect x="0" y="20" width={width} height="8" rx="2" fill="var(--muted)" />
            <rect
              x={x}
              y="20"
              width={Math.max(3, (attempt.duration_ms / total) * width)}
              height="8"
              rx="2"
              fill={served ? "var(--series-3)" : "var(--bad)"}
            />
          </g>
        );
      })}
    </svg>
  );
}

/**
 * One request: what was tried, what it cost and why. J and K walk the filtered list. A request of
 * another workspace is read elsewhere, and nothing of this workspace is changed for it.
 */
export function GenerationDrawer({
  id,
  onClose,
  onStep,
  read = explanationQuery,
  isOwn = true,
}: {
  id: string | undefined;
  onClose: () => void;
  onStep: (by: number) => void;
  read?: typeof explanationQuery;
  isOwn?: boolean;
}) {
  useEffect(() => {
    if (id === undefined) return undefined;
    const press = (event: KeyboardEvent): void => {
      if (event.key === "j" || event.key === "J") onStep(1);
      if (event.key === "k" || event.key === "K") onStep(-1);
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, [id, onStep]);
  return (
    <Drawer title="Request" open={id !== undefined} onClose={onClose}>
      {id === undefined ? null : (
        <>
          <Actions>
            <Button look="plain" onClick={() => onStep(-1)}>
              Newer (K)
            </Button>
            <Button look="plain" onClick={() => onStep(1)}>
              Older (J)
            </Button>
          </Actions>
          <GenerationShown id={id} read={read} isOwn={isOwn} />
        </>
      )}
    </Drawer>
  );
}

const failedProviders = ({ attempts }: GenerationDetails): string[] => [
  ...new Set(
    attempts.filter(({ outcome }) => outcome === "failed").map(({ provider }) => provider),
  ),
];

/** Asks a provider that failed no more, for those who may decide that. */
function SteerAway({ generation }: { generation: GenerationDetails }) {
  const mayBlock = useScope("write:security");
  const block = useMutation({ mutationFn: blockProvider });
  const providers = failedProviders(generation);
  if (!mayBlock || providers.length === 0) return null;
  if (block.isSuccess)
    return (
      <p role="status">
        {block.variables} is asked no more for this workspace. The workspace's privacy settings undo
        it.
      </p>
    );
  return (
    <>
      <Actions>
        {providers.map((provider) => (
          <Button
            key={provider}
            look="plain"
            disabled={block.isPending}
            onClick={() => block.mutate(provider)}
          >{`Ask ${provider} no more`}</Button>
        ))}
      </Actions>
      {block.error === null ? null : <Problem error={block.error} />}
    </>
  );
}

/** Who was in which place and why, and who was left out by which rule. */
function RoutingTrail({ routing }: Pick<GenerationDetails, "routing">) {
  if (routing === null) return <p>Only one provider could serve it.</p>;
  return (
    <>
      <ol>
        {routing.order.map((line) => (
          <li key={line}>{line}</li>
        ))}
      </ol>
      {routing.left_out.length === 0 ? null : (
        <>
          <h3>Left out</h3>
          <ul>
            {routing.left_out.map((line) => (
              <li key={line}>{line}</li>
            ))}
          </ul>
        </>
      )}
    </>
  );
}

function Price({
  explanation: { explanation, lines, sources, generation },
}: {
  explanation: Explanation;
}) {
  const paid = [
    ["monthly credits", sources.monthly_usd],
    ["top-ups", sources.topup_usd],
    ["not collected", sources.uncollected_usd],
  ] as const;
  return (
    <>
      <ul>
        {explanation.map((sentence) => (
          <li key={sentence}>{sentence}</li>
        ))}
      </ul>
      {lines.length === 0 ? null : (
        <Table
          rows={lines}
          rowKey={({ part }) => part}
          caption="Price by part"
          columns={[
            { head: "Part", cell: ({ part }) => part },
            { head: "Quantity", number: true, cell: ({ quantity }) => quantity },
            { head: "USD per million", number: true, cell: ({ usd_per_million: price }) => price },
            { head: "Amount", number: true, cell: ({ amount_usd: amount }) => requestCost(amount) },
          ]}
        />
      )}
      <Facts
        rows={[
          ["Held", requestCost(generation.hold.reserved_usd)],
          ...paid
            .filter(([, amount]) => amount > 0)
            .map(([name, amount]) => [`From ${name}`, requestCost(amount)] as const),
          ...(generation.price === null
            ? []
            : [["Price version", generation.price.version ?? "–"] as const]),
          ...(generation.output_cap === null
            ? []
            : [["Output cap", `${count(generation.output_cap)} tokens`] as const]),
          ...(generation.usage_estimated
            ? [["Usage", "estimated: the provider named none"] as const]
            : []),
          ...(generation.usage_clamped
            ? [["Usage", "cut to what can have been used"] as const]
            : []),
        ]}
      />
    </>
  );
}

/** Records have nothing of what was sent, so the repeat has the request's settings and an empty message. */
const curlOf = ({ requested_model: model, streamed }: GenerationDetails): string =>
  `curl ${location.origin}/api/v1/chat/completions \\\n  -H "Authorization: Bearer $SWITCHYARD_KEY" -H "Content-Type: application/json" \\\n` +
  `  -d '${JSON.stringify({ model, stream: streamed, messages: [{ role: "user", content: "" }] })}'`;

/** Ways to ask the same again; what is no chat has another path and other fields. */
function Repeat({ generation, mayAsk }: { generation: GenerationDetails; mayAsk: boolean }) {
  if (generation.api_type !== "completions") return null;
  return (
    <>
      <h2>Repeat</h2>
      {mayAsk ? (
        <Link to="/playground" search={{ model: generation.requested_model }}>
          Open in the playground
        </Link>
      ) : null}
      <p>Records keep what was asked for, and neither messages nor settings.</p>
      <Code text={curlOf(generation)} />
    </>
  );
}

function GenerationShown({
  id,
  read,
  isOwn,
}: {
  id: string;
  read: typeof explanationQuery;
  isOwn: boolean;
}) {
  const query = useQuery(read(id));
  const mayAsk = useScope("inference") && isOwn;
  return (
    <Loaded query={query} height={400}>
      {(explanation) => {
        const { generation } = explanation;
        return (
          <>
            <Facts
              rows={[
                ["Id", <code key="id">{explanation.id}</code>],
                ["State", <GenerationStatus key="state" status={generation.status} />],
                ["Model", generation.model],
                ["Asked for", generation.requested_model],
                ["Provider", generation.provider_name ?? "–"],
                ["Charged", requestCost(explanation.charged_usd)],
                [
                  "Tokens in / out",
                  `${count(generation.tokens_prompt)} / ${count(generation.tokens_completion)}`,
                ],
                ["First token", duration(generation.latency)],
                ["Total", duration(generation.total_time)],
                ["Finish", generation.finish_reason ?? "–"],
                ...(generation.error === null
                  ? []
                  : [["Error", `${generation.error.code}, ${generation.error.status}`] as const]),
                [
                  "Time",
                  <time
                    key="time"
                    dateTime={generation.created_at}
                    title={utc(generation.created_at)}
                  >
                    {localTime(generation.created_at)}
                  </time>,
                ],
              ]}
            />
            <h2>Attempts</h2>
            <Waterfall attempts={generation.attempts} />
            {isOwn ? <SteerAway generation={generation} /> : null}
            <h2>Routing</h2>
            <RoutingTrail routing={generation.routing} />
            <h2>Why it cost this</h2>
            <Price explanation={explanation} />
            {generation.translation_loss.length === 0 ? null : (
              <>
                <h2>Lost in translation</h2>
                <ul>
                  {generation.translation_loss.map(({ field, reason }) => (
                    <li key={field}>
                      <code>{field}</code>: {reason}
                    </li>
                  ))}
                </ul>
              </>
            )}
            <Repeat generation={generation} mayAsk={mayAsk} />
            <details>
              <summary>JSON</summary>
              <Code text={JSON.stringify(explanation, null, 2)} />
            </details>
            {isOwn ? <KeptContent key={explanation.id} id={explanation.id} /> : null}
          </>
        );
      }}
    </Loaded>
  );
}
