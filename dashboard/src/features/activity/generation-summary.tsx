import { useMutation } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { count, countOf, duration, requestCost } from "../../lib/format.ts";
import { useScope } from "../../lib/session.ts";
import { hasUnit, priceOf, quantityOf } from "../../lib/usage-parts.ts";
import { wordOf } from "../../lib/words.ts";
import { Actions, Button } from "../../ui/button.tsx";
import { Facts } from "../../ui/card.tsx";
import { Problem } from "../../ui/loaded.tsx";
import { Moment } from "../../ui/values.tsx";
import { Table } from "../../ui/table.tsx";
import { ProviderName, useProviderNames } from "../provider-keys/provider-names.tsx";
import { blockProvider, type Explanation, type GenerationDetails } from "./api.ts";
import { SessionTimeline, TimeSpan } from "./session-timeline.tsx";
import style from "./activity.module.css";

type Attempt = GenerationDetails["attempts"][number];

/** One attempt: who was asked, for how long, and what came of it. */
function AttemptRow({
  attempt: { provider, model, outcome, status, reason, duration_ms: took },
  startMs,
  totalMs,
}: {
  attempt: Attempt;
  startMs: number;
  totalMs: number;
}) {
  const isServed = outcome === "served";
  const words = [status, reason ? wordOf(reason) : wordOf(outcome)]
    .filter((part) => part !== null && part !== undefined && part !== 0)
    .join(", ");
  return (
    <li data-served={isServed}>
      <span className={style.attemptName}>
        <strong>
          <ProviderName id={provider} />
        </strong>{" "}
        <code>{model}</code>
      </span>
      <span className={style.attemptTime}>{duration(took)}</span>
      <TimeSpan startMs={startMs} tookMs={took} totalMs={totalMs} />
      <span className={style.attemptWords}>{words}</span>
    </li>
  );
}

/** Attempts one after the other, as bars on one time scale. */
function Waterfall({ attempts }: { attempts: readonly Attempt[] }) {
  const totalMs = Math.max(
    1,
    attempts.reduce((sum, { duration_ms: took }) => sum + took, 0),
  );
  const starts = attempts.map((_, index) =>
    attempts.slice(0, index).reduce((sum, { duration_ms: took }) => sum + took, 0),
  );
  return (
    <ol className={style.waterfall} aria-label={countOf(attempts.length, "attempt")}>
      {attempts.map((attempt, index) => (
        <AttemptRow
          key={`${attempt.provider} ${index}`}
          attempt={attempt}
          startMs={starts[index] ?? 0}
          totalMs={totalMs}
        />
      ))}
    </ol>
  );
}

const failedProviders = ({ attempts }: GenerationDetails): string[] => [
  ...new Set(
    attempts.filter(({ outcome }) => outcome === "failed").map(({ provider }) => provider),
  ),
];

/** Blocks a provider that failed, for those who may decide that. */
function BlockFailed({ generation }: { generation: GenerationDetails }) {
  const mayBlock = useScope("write:security");
  const nameOf = useProviderNames();
  const block = useMutation({ mutationFn: blockProvider });
  const providers = failedProviders(generation);
  if (!mayBlock || providers.length === 0) return null;
  if (block.isSuccess)
    return (
      <p role="status">
        {nameOf(block.variables)} is blocked for this workspace. Undo it in the{" "}
        <Link to="/security">privacy settings</Link>.
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
          >{`Block ${nameOf(provider)}`}</Button>
        ))}
      </Actions>
      {block.error === null ? null : <Problem error={block.error} />}
    </>
  );
}

/** Sentences of the API, where providers stand by their names and codes in words. */
function Lines({ lines }: { lines: readonly string[] }) {
  const nameOf = useProviderNames();
  const shown = (line: string): string =>
    line
      .replaceAll(/(?<= at )[\w-]+(?![\w/-])/g, nameOf)
      .replaceAll(/(?<=\()[a-z_]+(?=\))|(?<=the answer was )\w+/g, wordOf);
  return (
    <ul>
      {lines.map((line) => (
        <li key={line}>{shown(line)}</li>
      ))}
    </ul>
  );
}

/** The providers in the order in which they were considered, and those left out with the rule. */
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
          <Lines lines={routing.left_out} />
        </>
      )}
    </>
  );
}

/** What was charged, by part, and which money paid it. */
function PriceTable({ explanation }: { explanation: Explanation }) {
  const { lines, charged_usd: charged } = explanation;
  if (lines.length === 0) return null;
  const hasUnits = lines.some(({ part }) => hasUnit(part));
  return (
    <Table
      rows={[
        ...lines,
        { part: "Charged", quantity: undefined, usd_per_million: undefined, amount_usd: charged },
      ]}
      rowKey={({ part }) => part}
      caption="Price by part"
      compact
      columns={[
        { head: "Part", cell: ({ part }) => wordOf(part) },
        {
          head: "Quantity",
          number: true,
          cell: ({ part, quantity }) => (quantity === undefined ? "" : quantityOf(part, quantity)),
        },
        {
          head: hasUnits ? "Price" : "USD per million",
          number: true,
          cell: ({ part, usd_per_million: price }) =>
            price === undefined ? "" : priceOf(part, price),
        },
        { head: "Amount", number: true, cell: ({ amount_usd: amount }) => requestCost(amount) },
      ]}
    />
  );
}

/** Facts of the charge that the table of parts does not show. */
function chargeFacts({
  generation,
  sources,
}: Explanation): readonly (readonly [string, ReactNode])[] {
  const paid = [
    ["monthly credits", sources.monthly_usd],
    ["top-ups", sources.topup_usd],
    ["not collected", sources.uncollected_usd],
  ] as const;
  return [
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
      ? [["Usage", "estimated: the provider sent none"] as const]
      : []),
    ...(generation.usage_clamped ? [["Usage", "reduced to what can have been used"] as const] : []),
  ];
}

/** The batch whose line a request was, of the own workspace as a link. */
const batchFact = ({ batch_id: id }: GenerationDetails, isOwn: boolean) =>
  id === null
    ? []
    : [
        [
          "Batch",
          isOwn ? (
            <Link key="batch" to="/batches/$id" params={{ id }}>
              {id}
            </Link>
          ) : (
            id
          ),
        ] as const,
      ];

function mainFacts(
  { generation }: Explanation,
  isOwn: boolean,
): readonly (readonly [string, ReactNode])[] {
  return [
    ...(generation.error === null
      ? []
      : [["Error", `${wordOf(generation.error.code)} (${generation.error.status})`] as const]),
    ["Provider", <ProviderName key="provider" id={generation.provider_name} />],
    ...(generation.requested_model === generation.model
      ? []
      : [["Asked for", generation.requested_model] as const]),
    [
      "Tokens in / out",
      `${count(generation.tokens_prompt)} / ${count(generation.tokens_completion)}`,
    ],
    ["First token", duration(generation.latency)],
    ["Total", duration(generation.total_time)],
    ["Finish", generation.finish_reason === null ? "–" : wordOf(generation.finish_reason)],
    ...batchFact(generation, isOwn),
    ["Time", <Moment key="time" at={generation.created_at} />],
  ];
}

const Section = ({ title, children }: { title: string; children: ReactNode }) => (
  <section className={style.section}>
    <h2>{title}</h2>
    {children}
  </section>
);

/** What a request cost and why, and what was tried, which comes first where it failed. */
export function GenerationSummary({
  explanation,
  isOwn,
}: {
  explanation: Explanation;
  isOwn: boolean;
}) {
  const { generation } = explanation;
  const cost = (
    <Section title="Why it cost this">
      <PriceTable explanation={explanation} />
      <Lines lines={explanation.explanation} />
      <Facts rows={chargeFacts(explanation)} />
    </Section>
  );
  const attempts = (
    <Section title="Attempts">
      <Waterfall attempts={generation.attempts} />
      {isOwn ? <BlockFailed generation={generation} /> : null}
    </Section>
  );
  const [first, second] = generation.error === null ? [cost, attempts] : [attempts, cost];
  return (
    <>
      <Facts rows={mainFacts(explanation, isOwn)} />
      {first}
      {second}
      {isOwn && generation.surface === "realtime" && generation.session_id !== null ? (
        <Section title="Session">
          <SessionTimeline id={explanation.id} generation={generation} />
        </Section>
      ) : null}
      <Section title="Routing">
        <RoutingTrail routing={generation.routing} />
      </Section>
      {generation.translation_loss.length === 0 ? null : (
        <Section title="Lost in translation">
          <ul>
            {generation.translation_loss.map(({ field, reason }) => (
              <li key={field}>
                <code>{field}</code>: {reason}
              </li>
            ))}
          </ul>
        </Section>
      )}
    </>
  );
}
