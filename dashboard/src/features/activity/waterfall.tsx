import { duration } from "../../lib/format.ts";
import type { GenerationDetails } from "./api.ts";

type Attempts = GenerationDetails["attempts"];

const width = 560;
const row = 40;

/** Attempts one after the other, as bars on one time scale. */
export function Waterfall({ attempts }: { attempts: Attempts }) {
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
