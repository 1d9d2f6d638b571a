import type { DialectRequestCase } from "./dialect-requests/dialect-request-case.ts";
import { reasoningAndOutputCases } from "./dialect-requests/reasoning-and-output.ts";
import { textAndMediaCases } from "./dialect-requests/text-and-media.ts";
import { toolCases } from "./dialect-requests/tools.ts";

/** One canonical request a row, with what it is in each dialect. */
export const dialectRequestCases: readonly DialectRequestCase[] = [
  ...textAndMediaCases,
  ...toolCases,
  ...reasoningAndOutputCases,
];
