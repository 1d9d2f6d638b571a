import { AssertionError } from "../../platform/lib/assert.ts";
import type { ErrorCode } from "../../platform/lib/errors.ts";
import type { Loss } from "../canonical/loss.ts";
import type { Interpretation, WholeAnswer } from "../interpret/interpretation.ts";

/** A request of a surface without streams, as one upstream is told it. */
export interface WholeExchange<Part> {
  /** JSON bodies that are sent, at least one; more where the upstream takes no more at once. */
  bodies: readonly object[];
  /** Headers that go with each. */
  headers?: Readonly<Record<string, string>>;
  /** How many are under way at once. */
  parallel: number;
  losses: readonly Loss[];
  /** What the caller is told of an answer that cannot be used. */
  unusableCode: ErrorCode;
  /** Reads the answer to one body; undefined when it is none of the dialect's. */
  read(body: object, index: number): Part | undefined;
  /** The answer that the parts, in the order of the bodies, add up to. */
  join(parts: readonly Part[]): WholeAnswer;
}

/** What the spine reads of an answer that is a piece of another. */
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

/** How a request of a surface without streams meets an upstream. */
export function interpretWhole<Part>(exchange: WholeExchange<Part>): Interpretation {
  const { bodies, headers, parallel, losses, unusableCode, read, join } = exchange;
  const shared = {
    habits: {},
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
    (_, index): Interpretation => ({
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
