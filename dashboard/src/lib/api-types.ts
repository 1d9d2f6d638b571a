import type { components } from "./api-schema.ts";

/** The JSON of the answers, by operation: `Answers["GET /credits"]`. */
export type Answers = components["schemas"]["Answers"];

/** The JSON of the bodies, by operation: `Bodies["POST /keys"]`. */
export type Bodies = components["schemas"]["Bodies"];

/** A row of the list that an operation answers: `Row<"GET /keys">`. */
export type Row<Name extends keyof Answers> = Answers[Name] extends {
  readonly data: readonly (infer One)[];
}
  ? One
  : never;
