import { expect, test } from "bun:test";
import { ImportPlan } from "./import-plan.ts";
import { PortkeyImport } from "./portkey-import.ts";
import { SourceDocument } from "./source-document.ts";

function presetOf(config: object) {
  const plan = new ImportPlan(0);
  const source = new SourceDocument("config.json", JSON.stringify(config));
  new PortkeyImport(plan).run([source]);
  return { preset: plan.presets[0]?.["config"], findings: source.findings };
}

test("parameters hold without a model, and around several targets", () => {
  expect(presetOf({ override_params: { max_tokens: 400 } }).preset).toEqual({ max_tokens: 400 });
  const { preset } = presetOf({
    strategy: { mode: "fallback" },
    override_params: { max_tokens: 400, reasoning_effort: "low" },
    targets: [
      { provider: "nobody", override_params: { model: "x" } },
      { provider: "openai", override_params: { model: "gpt-4o" } },
    ],
  });
  expect(preset).toEqual({ model: "openai/gpt-4o", max_tokens: 400, reasoning: { effort: "low" } });
});

test("a bound of a later target that differs is reported", () => {
  const { preset, findings } = presetOf({
    targets: [
      { provider: "openai", override_params: { model: "gpt-4o", max_tokens: 400 } },
      { provider: "openai", override_params: { model: "gpt-4o-mini", max_tokens: 50 } },
    ],
  });
  expect(preset).toMatchObject({ max_tokens: 400 });
  expect(findings.find(({ path }) => path === "targets[1].override_params")?.text).toContain(
    "max_tokens",
  );
});
