import { at, isOther } from "../reading.ts";
import { type Fields, rulesOf, type VendorRule } from "../rule.ts";
import { ask } from "../samples.ts";

const envelope = ({ message }: { message: string }): Fields => ({
  error: { code: "1210", message },
});

/** Models that cannot stop thinking; older ones do by `thinking`, and pass over an effort. */
const thinkers = /glm-5\.[3-9]/;
const says =
  "This model always engages in thinking and cannot be disabled; please use low, high, or max";
const source =
  "github.com/theopenco/llmgateway/pull/3605 (2026-08-14), looplj/axonhub/pull/2314 (2026-08-27)";

/** What Z.AI refuses. */
export const zaiRules: readonly VendorRule[] = rulesOf(
  { vendor: "zai", endpoint: "chat", body: envelope },
  [
    {
      id: "thinking-off-on-thinkers",
      models: thinkers,
      when: ({ body }) => at(body, "thinking.type") === "disabled",
      says,
      source,
      violates: { model: "glm-5.3", body: ask({ thinking: { type: "disabled" } }) },
    },
    {
      id: "effort-of-thinkers",
      models: thinkers,
      when: isOther("reasoning_effort", "low", "high", "max"),
      says,
      source,
      violates: { model: "glm-5.3", body: ask({ reasoning_effort: "none" }) },
    },
  ],
);
