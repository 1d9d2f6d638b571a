import { useQuery } from "@tanstack/react-query";
import { count, countOf, duration, requestCost } from "../../lib/format.ts";
import { Loaded } from "../../ui/loaded.tsx";
import { type GenerationDetails, sessionQuery } from "./api.ts";
import type { Generation } from "./latest.ts";
import style from "./activity.module.css";

/** A bar for when something was done within a whole, and for how long. Times are in milliseconds. */
export const TimeSpan = ({
  startMs,
  tookMs,
  totalMs,
}: {
  startMs: number;
  tookMs: number;
  totalMs: number;
}) => (
  <svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
    <rect width="100" height="8" className={style.track} />
    <rect
      x={(startMs / totalMs) * 100}
      width={Math.max(0.6, (tookMs / totalMs) * 100)}
      height="8"
      className={style.span}
    />
  </svg>
);

const endOf = ({ created_at: createdAt, total_time: tookMs }: Generation): number =>
  Date.parse(createdAt) + (tookMs ?? 0);

/** One response: when it came, what it used and what it cost. */
function ResponseRow({
  response,
  fromMs,
  totalMs,
  isShown,
}: {
  response: Generation;
  fromMs: number;
  totalMs: number;
  isShown: boolean;
}) {
  const startMs = Date.parse(response.created_at) - fromMs;
  const tookMs = response.total_time ?? 0;
  const tokens = `${count(response.tokens_prompt)} in, ${count(response.tokens_completion)} out`;
  return (
    <li data-served={response.error === null} aria-current={isShown ? "true" : undefined}>
      <span className={style.attemptName}>
        <strong>{`+${duration(startMs)}`}</strong> <code>{response.model}</code>
      </span>
      <span className={style.attemptTime}>{duration(tookMs)}</span>
      <TimeSpan startMs={startMs} tookMs={tookMs} totalMs={totalMs} />
      <span className={style.attemptWords}>
        {`${isShown ? "This response: " : ""}${tokens}, ${requestCost(response.total_cost)}`}
      </span>
    </li>
  );
}

/** The responses of a realtime session and its transcripts, on one time scale. */
export function SessionTimeline({
  id,
  generation: { session_id: sessionId, created_at: createdAt },
}: {
  id: string;
  generation: GenerationDetails;
}) {
  const query = useQuery(sessionQuery(sessionId ?? "", createdAt));
  return (
    <Loaded query={query} height={120}>
      {(responses) => {
        const fromMs = Math.min(...responses.map((each) => Date.parse(each.created_at)));
        const totalMs = Math.max(1, ...responses.map((each) => endOf(each) - fromMs));
        return (
          <ol className={style.waterfall} aria-label={countOf(responses.length, "response")}>
            {responses.map((response) => (
              <ResponseRow
                key={response.id}
                isShown={response.id === id}
                {...{ response, fromMs, totalMs }}
              />
            ))}
          </ol>
        );
      }}
    </Loaded>
  );
}
