import type { StreamsMemory } from "./measure-streams.ts";
import type { Figures, PeerResults, ScenarioFailure } from "./results.ts";

type Format = (value: number | undefined) => string;

const orDash =
  (format: (value: number) => string): Format =>
  (value) =>
    value === undefined ? "-" : format(value);
const rateText = orDash((value) => Math.round(value).toLocaleString("en-US"));
const microsecondText = orDash((value) => value.toFixed(1));
const millisecondText = orDash((us) => (us / 1000).toFixed(us < 10_000 ? 2 : 1));
const megabyteText = orDash((kb) => (kb / 1024).toFixed(1));
const wholeText = orDash((value) => String(Math.round(value)));

/** Rows of cells under a head, columns aligned; a row of one cell is a line of its own. */
export function alignedTable(rows: readonly (readonly string[])[]): string {
  const widths: number[] = [];
  for (const row of rows.filter(({ length }) => length > 1)) {
    row.forEach(
      (cell, column) => void (widths[column] = Math.max(widths[column] ?? 0, cell.length)),
    );
  }
  const pad = (cell: string, column: number): string =>
    column < 2 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0);
  return rows
    .map((row) =>
      row
        .map(row.length > 1 ? pad : String)
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

/** Everything a person reads after a run. */
export function reportText(peers: readonly PeerResults[]): string {
  return [
    alignedTable([...scenarioRows(peers), [""], ...startRows(peers)]),
    "",
    alignedTable(workRows(peers)),
    "",
    ...ratioLines(peers),
    ...peers.flatMap(({ name, failure }) =>
      failure === undefined ? [] : [`${name}: no figures, ${failure}`],
    ),
  ].join("\n");
}

/** What is on and off in each peer. */
const workRows = (peers: readonly PeerResults[]): string[][] => [
  ["for each request", "version", "credential", "limits", "price", "record"],
  ...peers.flatMap(({ name, version, work }) =>
    work === undefined
      ? []
      : [[name, version || "-", work.credential, work.limits, work.price, work.record]],
  ),
];

const scenarioHead = [
  "scenario",
  "peer",
  "req/s",
  "cpu us/req",
  "req/cpu-s",
  "p50 ms",
  "p99 ms",
  "+p50",
  "+p99",
  "1st byte",
  "+1st",
  "events/s",
  "cpu us/event",
  "delay p50",
  "delay p99",
  "RSS MB",
  "errors",
];

function scenarioRows(peers: readonly PeerResults[]): string[][] {
  const names = [...new Set(peers.flatMap(({ scenarios }) => Object.keys(scenarios)))];
  return [
    scenarioHead,
    ...names.flatMap((name) =>
      peers.flatMap((peer) => {
        const figures = peer.scenarios[name];
        return figures === undefined ? [] : [[name, peer.name, ...scenarioCells(figures)]];
      }),
    ),
  ];
}

function scenarioCells(figures: Figures | ScenarioFailure): string[] {
  if ("failure" in figures) return [...scenarioHead.slice(3).map(() => "-"), "failed"];
  return [
    rateText(figures.requestsPerSecond),
    microsecondText(figures.cpuUsPerRequest),
    rateText(figures.requestsPerCpuSecond),
    millisecondText(figures.p50Us),
    millisecondText(figures.p99Us),
    millisecondText(figures.addedP50Us),
    millisecondText(figures.addedP99Us),
    millisecondText(figures.firstByteP50Us),
    millisecondText(figures.addedFirstByteP50Us),
    rateText(figures.eventsPerSecond),
    microsecondText(figures.cpuUsPerEvent),
    millisecondText(figures.eventDelayP50Us),
    millisecondText(figures.eventDelayP99Us),
    megabyteText(figures.rssKb),
    String(figures.errors),
  ];
}

function startRows(peers: readonly PeerResults[]): string[][] {
  const head = [
    "start, memory",
    "peer",
    "cold ms",
    "second ms",
    "wrk req/s",
    "streams",
    "RSS MB",
    "PSS MB",
    "RSS open",
    "PSS open",
    "KB/stream",
    "PSS after",
    "slots back ms",
  ];
  return [
    head,
    ...peers.filter(({ coldStartMs }) => coldStartMs !== undefined).map((peer) => startRow(peer)),
  ];
}

function startRow({
  name,
  version,
  coldStartMs,
  secondStartMs,
  wrkRequestsPerSecond,
  streams,
}: PeerResults): string[] {
  const start = [
    version,
    name,
    wholeText(coldStartMs),
    wholeText(secondStartMs),
    rateText(wrkRequestsPerSecond),
  ];
  if (streams === undefined || "failure" in streams)
    return [...start, streams === undefined ? "-" : "failed"];
  const { before, open, after, slotsBackMs } = streams;
  return [
    ...start,
    String(streams.streams),
    megabyteText(before?.rssKb),
    megabyteText(before?.pssKb),
    megabyteText(open?.rssKb),
    megabyteText(open?.pssKb),
    microsecondText(kilobytesPerStream(streams)),
    megabyteText(after?.pssKb),
    slotsBackMs === undefined ? "never" : wholeText(slotsBackMs),
  ];
}

const kilobytesPerStream = ({ before, open, streams }: StreamsMemory): number | undefined =>
  before === undefined || open === undefined ? undefined : (open.pssKb - before.pssKb) / streams;

/** What is compared, and whether more of it is better. */
const comparisons = [
  { title: "requests per CPU-second", read: (figures: Figures) => figures.requestsPerCpuSecond },
  {
    title: "events per CPU-second",
    read: (figures: Figures) => figures.cpuUsPerEvent && 1e6 / figures.cpuUsPerEvent,
  },
] as const;

const comparedWith = new Set(["nginx", "portkey", "gomodel", "litellm", "tensorzero"]);

/** Each gateway against the other programs, per core, in every scenario that has the figures. */
function ratioLines(peers: readonly PeerResults[]): string[] {
  const gateways = peers.filter(({ name }) => name.startsWith("gateway"));
  const others = peers.filter(({ name }) => comparedWith.has(name));
  const rows = gateways.flatMap((gateway) =>
    comparisons.flatMap(({ title, read }) =>
      Object.keys(gateway.scenarios).flatMap((scenario) => {
        const ofScenario = figureIn(scenario, read);
        const cells = others.map((other) => ratioText(ofScenario(gateway), ofScenario(other)));
        return cells.every((cell) => cell === "-")
          ? []
          : [[`${gateway.name}, ${title}`, scenario, ...cells]];
      }),
    ),
  );
  if (rows.length === 0) return [];
  return [
    alignedTable([["ratio", "scenario", ...others.map(({ name }) => `/ ${name}`)], ...rows]),
    "",
  ];
}

const figureIn =
  (scenario: string, read: (figures: Figures) => number | undefined) =>
  ({ scenarios }: PeerResults) => {
    const figures = scenarios[scenario];
    return figures === undefined || "failure" in figures ? undefined : read(figures);
  };

const ratioText = (own: number | undefined, other: number | undefined): string =>
  own === undefined || other === undefined ? "-" : (own / other).toFixed(2);

/** The failures of single scenarios and of the memory measurement, in words. */
export function failureLines(peers: readonly PeerResults[]): string[] {
  return peers.flatMap(({ name, scenarios, streams }) => [
    ...Object.entries(scenarios).flatMap(([scenario, figures]) =>
      "failure" in figures ? [`${name}, ${scenario}: ${figures.failure}`] : [],
    ),
    ...(streams !== undefined && "failure" in streams
      ? [`${name}, quiet streams: ${streams.failure}`]
      : []),
  ]);
}
