import type { UpstreamResponse } from "../../src/inference/upstream/upstream-client.ts";
import { UpstreamFailure } from "../../src/inference/upstream/upstream-failure.ts";

/**
 * What a provider does with one request: after how long, and with which status, or with no answer
 * at all.
 */
export interface Behaviour {
  afterMs: number;
  /** Absent where the connection breaks or nothing comes in time. */
  status?: number;
  transport?: "connect_failed" | "first_token_timeout";
}

const answers = (random: () => number): Behaviour => ({
  afterMs: 300 + 900 * random(),
  status: 200,
});
/** Fails a share of the requests with a status, as soon as it has them. */
const fails =
  (share: number, status: number) =>
  (random: () => number): Behaviour =>
    random() < share ? { afterMs: 30 + 50 * random(), status } : answers(random);

/** What can be wrong with a provider for a while. */
export const faults = {
  "half of its answers are errors": fails(0.5, 500),
  "four in five answers are errors": fails(0.8, 503),
  "it rations most requests": fails(0.8, 429),
  "it cannot be reached": (random: () => number): Behaviour => ({
    afterMs: 5 + 5 * random(),
    transport: "connect_failed",
  }),
  "it hangs": (): Behaviour => ({ afterMs: 10_000, transport: "first_token_timeout" }),
} as const;

type FaultName = keyof typeof faults;
const faultNames = Object.keys(faults) as FaultName[];

/** How a provider without a fault behaves. */
export const healthy = answers;

/**
 * Something that is wrong with a provider for a while; times are milliseconds since the beginning.
 */
export interface Fault {
  provider: string;
  name: FaultName;
  fromMs: number;
  untilMs: number;
}

const minuteMs = 60_000;

/**
 * Faults of each provider, with longer times of health between them; the last ten minutes are
 * without any.
 */
export function drawFaults(
  providers: readonly string[],
  { random, lengthMs }: { random: () => number; lengthMs: number },
): Fault[] {
  return providers.flatMap((provider) => {
    const drawn: Fault[] = [];
    for (let fromMs = (1 + 20 * random()) * minuteMs; ; fromMs += (8 + 24 * random()) * minuteMs) {
      const untilMs = fromMs + (0.5 + 6 * random()) * minuteMs;
      if (untilMs > lengthMs - 10 * minuteMs) return drawn;
      drawn.push({
        provider,
        name: faultNames[Math.floor(random() * faultNames.length)] as FaultName,
        fromMs,
        untilMs,
      });
      fromMs = untilMs;
    }
  });
}

/** What a client of the provider gets of a behaviour. Throws what the socket would. */
export function responseOf({ status = 0, transport }: Behaviour, body: string): UpstreamResponse {
  if (transport !== undefined)
    throw new UpstreamFailure(transport, transport, { sent: transport !== "connect_failed" });
  return {
    status,
    headers: { "content-type": "application/json" },
    next: () => undefined,
    readText: () => Promise.resolve(status === 200 ? body : '{"error": {"message": "no"}}'),
    expectMore: () => undefined,
    expectEnd: () => undefined,
    abort: () => undefined,
  };
}
