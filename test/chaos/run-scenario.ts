import {
  openHolds,
  untilIdle,
  untilUncollectedIsBooked,
} from "../end-to-end/process/support/expect-nothing-held.ts";
import { standingBooks } from "../end-to-end/process/support/standing-books.ts";
import { chatAnswer } from "../support/upstream/healthy-chat.ts";
import { Load } from "./load.ts";
import { startParts, type ChaosParts, type Topology } from "./parts.ts";
import type { Scenario } from "./scenarios.ts";

/** What one scenario did to clients and to the books. */
export interface ChaosResult {
  topology: Topology;
  name: string;
  asked: number;
  served: number;
  /** Answers with a 5xx status. */
  failed: number;
  /** Connections that ended before an answer did. */
  broken: number;
  /** From the end of the fault until every gateway has served seven answers in a row. */
  secondsToNormal: number;
  /** Charges that a client was shown and that do not stand. */
  lost: number;
  /** Charges that stand twice, or otherwise than they were shown. */
  double: number;
  /** Whole answers without a charge. */
  free: number;
  /** Requests that the provider was sent and no workspace was charged for. */
  unpaid: number;
  /** Charges that were booked to the operator. */
  uncollected: number;
  /** Holds that are left once nothing is under way. */
  stuckHolds: number;
  /** Before the fault, and while it lasts at those gateways that are not broken themselves. */
  p99BeforeMs: number;
  p99DuringMs: number | undefined;
}

const usage = { prompt_tokens: 20, completion_tokens: 10, total_tokens: 30 };
/** Answers that begin so shortly before the fault are counted with neither. */
const slowestMs = 500;
/** Answers before the fault begins, so that there is something to compare with. */
const servedBefore = 300;

/** How clients ask. */
interface LoadWanted {
  /** Answers before the fault begins. */
  servedBefore?: number;
  /** Pause of a client between its requests, where the processors are not theirs alone. */
  restMs?: number;
}

/** Runs one scenario on gateways of its own, and closes their books. */
export async function runScenario(scenario: Scenario, topology: Topology): Promise<ChaosResult> {
  const parts = await startParts({ ...scenario, topology });
  try {
    return { topology, ...(await runOn(parts, scenario)) };
  } finally {
    await Promise.all(parts.gateways.map((gateway) => gateway.kill9()));
    await parts.stop();
  }
}

/** Runs one scenario on gateways that run, and closes their books, in which others may stand. */
export async function runOn(
  parts: ChaosParts,
  scenario: Scenario,
  { restMs = 0, servedBefore: before = servedBefore }: LoadWanted = {},
): Promise<Omit<ChaosResult, "topology">> {
  parts.upstream.script((request) => chatAnswer(request, { usage }));
  const earlier = await unpaidAndUncollected(parts);
  const load = new Load(parts.gateways, { restMs });
  const beganMs = performance.now();
  do await load.untilNormal();
  while (load.served < before);
  const brokenMs = performance.now();
  const mend = await scenario.breaks(parts, load);
  const mendingMs = performance.now();
  await mend();
  const mendedMs = performance.now();
  await load.untilNormal();
  const secondsToNormal = Math.round((performance.now() - mendedMs) / 100) / 10;
  await load.end();
  const isOther = (home: number): boolean => home !== scenario.broken;
  const books = await closeBooks(parts, load);
  const { unpaid, uncollected } = await unpaidAndUncollected(parts);
  return {
    name: scenario.name,
    secondsToNormal,
    p99BeforeMs: Math.round(load.p99Ms(beganMs, brokenMs - slowestMs, () => true) ?? 0),
    p99DuringMs: roundedOr(load.p99Ms(brokenMs, Math.max(mendingMs, mendedMs), isOther)),
    ...books,
    unpaid: unpaid - earlier.unpaid,
    uncollected: uncollected - earlier.uncollected,
  };
}

const roundedOr = (milliseconds: number | undefined): number | undefined =>
  milliseconds === undefined ? undefined : Math.round(milliseconds);

const countsSql = `select (select count(*) from generations where cost_nano > 0) as paid,
  (select count(*) from transfers where kind = 'uncollected') as uncollected`;

/** What the provider was sent for nothing, and what was booked to the operator, so far. */
async function unpaidAndUncollected({ query, upstream }: ChaosParts) {
  const [counts] = await query(countsSql);
  return {
    unpaid: upstream.requests.length - Number(counts?.["paid"]),
    uncollected: Number(counts?.["uncollected"]),
  };
}

async function closeBooks({ gateways, query }: ChaosParts, load: Load) {
  await Promise.all(gateways.map(untilUncollectedIsBooked));
  await Promise.all(gateways.map(untilIdle));
  const { charges } = await standingBooks({ options: {}, query });
  const standing = load.seen.filter(({ generationId }) => charges.has(generationId));
  const ids = new Set(load.seen.map(({ generationId }) => generationId));
  const differing = standing.filter(
    ({ generationId, costNano }) => charges.get(generationId) !== costNano,
  );
  const holds = await Promise.all(gateways.map(openHolds));
  const { asked, served, failed, broken, free } = load;
  return {
    asked,
    served,
    failed,
    broken,
    lost: load.seen.length - standing.length,
    double: load.seen.length - ids.size + differing.length,
    free,
    stuckHolds: holds.reduce((sum, count) => sum + count, 0),
  };
}
