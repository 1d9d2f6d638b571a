import { expect, test } from "bun:test";
import { sandboxModels, sandboxProvider } from "./sandbox-models.ts";

test("every sandbox model is free and named as simulated", () => {
  for (const model of sandboxModels) {
    expect(model.id).toMatch(/^sandbox\/[a-z]+:free$/);
    expect(model.display_name).toContain("(simulated)");
    expect(model.pricing).toEqual({ prompt: "0", completion: "0" });
  }
});

test("the sandbox provider has a dialect for the surface of every model", () => {
  const provider = sandboxProvider("http://127.0.0.1:1");
  expect(provider.base_url).toBe("http://127.0.0.1:1/v1");
  expect(provider.name).toContain("(simulated)");
  for (const model of provider.models) expect(provider.dialect).toHaveProperty(model.surface);
});

test("the sandbox chat model declares its actual limits and efforts", () => {
  expect(sandboxModels.find((model) => model.id === "sandbox/chat:free")).toMatchObject({
    context_length: 131_072,
    max_completion_tokens: 65_536,
    reasoning: { levels: ["low", "medium", "high"], default: "medium" },
  });
});
