import { AssertionError } from "../../platform/kernel/assert.ts";
import type { ErrorCode } from "../../platform/kernel/errors.ts";
import type { Loss } from "../canonical/request.ts";
import type { WholeAnswer } from "../dialects/shared/exchange.ts";
import type { Adapter } from "../pipeline/inference-call.ts";
import type { Usage, UsagePart } from "../../platform/kernel/usage.ts";
import type { MeteredUsage } from "../canonical/response.ts";
import { CountReader } from "../dialects/shared/wire-fields.ts";

/** A request of a surface without streams, as one upstream is sent it. */
interface WholeExchange<Part> {
  /** The JSON bodies to send, at least one; more where the upstream accepts less at once. */
  bodies: readonly object[];
  /** Headers for each of them. */
  headers?: Readonly<Record<string, string>>;
  /** The number of requests in flight at once. */
  parallel: number;
  losses: readonly Loss[];
  /** The caller's error for an unusable answer. */
  unusableCode: ErrorCode;
  /** Reads the answer to one body; undefined when it is none of the dialect's. */
  read(body: object, index: number): Part | undefined;
  /** Joins the parts, in the order of the bodies, to one answer. */
  join(parts: readonly Part[]): WholeAnswer;
}

/** The whole answer that each piece counts as. */
const piece: WholeAnswer = {
  upstreamId: null,
  finishReason: null,
  metered: undefined,
  outputCharacters: 0,
  hasContent: true,
  spentOnReasoning: false,
  render: () => "",
};

function noRelay(): never {
  throw new AssertionError("nothing is streamed on this surface");
}

/** Adapts a request of a surface without streams to an upstream. */
export function adaptWhole<Part>(exchange: WholeExchange<Part>): Adapter {
  const { bodies, headers, parallel, losses, unusableCode, read, join } = exchange;
  const shared = {
    answerDeviations: {},
    losses,
    unusableCode,
    ...(headers !== undefined && { requestHeaders: headers }),
    createRelay: noRelay,
  };
  const textOf = (index: number): string => JSON.stringify(bodies[index]);
  if (bodies.length === 1) {
    return {
      ...shared,
      requestText: textOf(0),
      readWhole(_, body) {
        const part = read(body, 0);
        return part === undefined ? undefined : join([part]);
      },
    };
  }
  const parts = new Array<Part>(bodies.length);
  const each = bodies.map(
    (_, index): Adapter => ({
      ...shared,
      get requestText() {
        return textOf(index);
      },
      readWhole(__, body) {
        const part = read(body, index);
        if (part === undefined) return undefined;
        parts[index] = part;
        return piece;
      },
    }),
  );
  return {
    ...shared,
    requestText: "",
    readWhole: () => undefined,
    pieces: { each, parallel, join: () => join(parts) },
  };
}

/** Sums the usage of several answers; undefined when any of them reported none. */
export function sumUsage(parts: readonly (MeteredUsage | undefined)[]): MeteredUsage | undefined {
  const usage: Usage = {};
  const sum: MeteredUsage = { usage, estimated: false, clamped: false };
  for (const part of parts) {
    if (part === undefined) return undefined;
    for (const [name, count] of Object.entries(part.usage) as [UsagePart, number | undefined][]) {
      if (count !== undefined) usage[name] = (usage[name] ?? 0) + count;
    }
    sum.estimated ||= part.estimated;
    sum.clamped ||= part.clamped;
    if (part.providerCostUsd !== undefined)
      sum.providerCostUsd = (sum.providerCostUsd ?? 0) + part.providerCostUsd;
  }
  return sum;
}

/**
 * Returns the usage of a provider that reports one count, that of the input; undefined when it
 * reported none.
 */
export function inputTokensOf(count: unknown): MeteredUsage | undefined {
  const counts = new CountReader();
  const inputTokens = counts.read(count);
  return inputTokens === undefined
    ? undefined
    : { usage: { inputTokens }, estimated: false, clamped: counts.clamped };
}
