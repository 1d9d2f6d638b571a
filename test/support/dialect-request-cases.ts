import type { DialectRequestCase } from "./dialect-requests/dialect-request-case.ts";
import { reasoningAndOutputCases } from "./dialect-requests/reasoning-and-output.ts";
import { textAndMediaCases } from "./dialect-requests/text-and-media.ts";
import { toolCases } from "./dialect-requests/tools.ts";

/** Rows of one canonical request each, with its form in each dialect. */
export const dialectRequestCases: readonly DialectRequestCase[] = [
  ...textAndMediaCases,
  ...toolCases,
  ...reasoningAndOutputCases,
];
