import { fileURLToPath } from "node:url";
import { runClosedLoop } from "../load/closed-loop.ts";
import { waitForLine, type Child, type Children } from "../process/children.ts";
import { median } from "../results.ts";

/** What happens beside the chat that is measured. */
const neighbours = ["nothing", "hostile", "pages"] as const;

/** One of them. */
export type Neighbour = (typeof neighbours)[number];

/** Latencies of chat beside something, in milliseconds: medians of the rounds. */
export interface ChatLatency {
  neighbour: Neighbour;
  p50Ms: number;
  p99Ms: number;
  requests: number;
  /** Files that were answered meanwhile. */
  files: number;
}

const rounds = 3;
const ratePerSecond = 50;
const warmupMs = 1_000;
const durationMs = 4_000;

/** The gateway that is measured. */
export interface MeasuredChat {
  children: Children;
  port: number;
  key: string;
}

const senderPath = fileURLToPath(new URL("./sender.ts", import.meta.url));

/** Sends files of a kind in a process of its own; resolves when the first one was answered. */
async function startSender(
  { children, port, key }: MeasuredChat,
  neighbour: Neighbour,
): Promise<Child> {
  const command = [process.execPath, senderPath, `http://127.0.0.1:${port}`, key, neighbour];
  const sender = children.spawn({ name: `sender-${neighbour}`, command });
  await waitForLine(sender, { pattern: /^\d+$/, timeoutMs: 60_000 });
  return sender;
}

/** Counts the lines that a program has printed and that were not read yet. */
async function unreadLines(child: Child): Promise<number> {
  let count = 0;
  for (;;) {
    const line = await Promise.race([child.nextLine(), Bun.sleep(0).then(() => undefined)]);
    if (line === undefined) return count;
    count += 1;
  }
}

async function measureOnce(
  measured: MeasuredChat,
  neighbour: Neighbour,
): Promise<Omit<ChatLatency, "neighbour">> {
  const sender = neighbour === "nothing" ? undefined : await startSender(measured, neighbour);
  const result = await runClosedLoop({
    kind: "closed-loop",
    connections: 8,
    warmupMs,
    durationMs,
    ratePerSecond,
    watchPids: [],
    target: {
      port: measured.port,
      path: "/v1/chat/completions",
      headers: { authorization: `Bearer ${measured.key}` },
      model: "mock/large",
      stream: false,
      bodyBytes: 1_024,
    },
  });
  const files = sender === undefined ? 0 : await unreadLines(sender);
  await sender?.stop();
  if (result.errors > 0) throw new Error(`chat failed beside ${neighbour}: ${result.firstError}`);
  return {
    p50Ms: result.latency.p50Us / 1_000,
    p99Ms: result.latency.p99Us / 1_000,
    requests: result.completed,
    files,
  };
}

/**
 * Measures chat beside each neighbour in turns, so that what else the machine does falls on all
 * alike.
 */
export async function chatLatencies(measured: MeasuredChat): Promise<ChatLatency[]> {
  const figures = new Map<Neighbour, Omit<ChatLatency, "neighbour">[]>(
    neighbours.map((neighbour) => [neighbour, []]),
  );
  for (let round = 0; round < rounds; round += 1) {
    for (const neighbour of neighbours)
      figures.get(neighbour)?.push(await measureOnce(measured, neighbour));
  }
  return [...figures].map(([neighbour, each]) => ({
    neighbour,
    p50Ms: median(each.map(({ p50Ms }) => p50Ms)),
    p99Ms: median(each.map(({ p99Ms }) => p99Ms)),
    requests: each.reduce((sum, { requests }) => sum + requests, 0),
    files: each.reduce((sum, { files }) => sum + files, 0),
  }));
}
