import { expect, test } from "bun:test";
import { join } from "node:path";
import { endpoints } from "../../../src/endpoints/index.ts";
import { startGateway, testManagementKey } from "../../support/gateway.ts";
import { at } from "../api/at.ts";

const bodies: Record<string, unknown> = {
  "/credits/top-ups": { amount: 10 },
  "/credits/automatic": { threshold: 10, amount: 20, monthly_limit: 50, consent: true },
};

test("without a Stripe key every payment route returns 501", async () => {
  const gateway = await startGateway();
  const routes = endpoints.filter(({ tag }) => tag === "Payments");
  expect(routes).toHaveLength(11);
  for (const { method, path, base } of routes) {
    const query = path === "/credits/quote" ? "?amount=10" : "";
    const response = await fetch(
      (base === "root" ? gateway.origin : gateway.baseUrl) + path.replace(":id", "x") + query,
      {
        method,
        headers: { authorization: `Bearer ${testManagementKey}` },
        ...(method === "POST" ? { body: JSON.stringify(bodies[path] ?? {}) } : {}),
      },
    );
    const error = await response.json();
    expect([path, response.status, at(error, "error.code")]).toEqual([path, 501, "not_configured"]);
    expect(at(error, "error.message")).toContain("STRIPE_SECRET_KEY");
  }
  expect(gateway.app.payments).toBeUndefined();
  await gateway.stop();
});

test("without a Stripe key Stripe's library is not loaded", () => {
  const support = join(import.meta.dir, "../../support/");
  const script = (settings: string): string => `
    const { startGateway } = await import(${JSON.stringify(join(support, "gateway.ts"))});
    const { paymentSettings } = await import(${JSON.stringify(join(support, "stripe/paying-gateway.ts"))});
    const gateway = await startGateway({ payments: ${settings} });
    console.log(Object.keys(require.cache).filter((path) => path.includes("node_modules/stripe/")).length);
    await gateway.stop();`;
  const loaded = (settings: string): number => {
    const { stdout, stderr } = Bun.spawnSync([process.execPath, "-e", script(settings)]);
    const count = Number(stdout.toString().trim() || Number.NaN);
    if (Number.isNaN(count)) throw new Error(stderr.toString());
    return count;
  };
  expect(loaded("{ ...paymentSettings('http://127.0.0.1:1'), stripe: {} }")).toBe(0);
  expect(loaded("paymentSettings('http://127.0.0.1:1')")).toBeGreaterThan(0);
}, 240_000);
