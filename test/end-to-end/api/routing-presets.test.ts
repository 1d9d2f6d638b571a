import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { acme, startGateway, type TestGateway } from "../../support/gateway.ts";
import { type FaultUpstream, startFaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { at, listAt, textAt } from "./at.ts";
import { chatRequest } from "./chat-request.ts";
import { errorOf } from "./error-envelope-of.ts";

const model = (id: string, price: string, more: Record<string, unknown> = {}) => ({
  id,
  pricing: { prompt: price, completion: price },
  context_length: 100_000,
  capabilities: ["chat", "function-calling"],
  ...more,
});

let upstream: FaultUpstream;
let gateway: TestGateway;
beforeAll(async () => {
  upstream = await startFaultUpstream();
  gateway = await startGateway({
    providers: [
      acme(upstream.baseUrl, {
        models: [
          model("acme/large", "4"),
          model("acme/small", "1", { context_length: 16_000, supported_parameters: ["seed"] }),
          model("acme/gift:free", "0"),
        ],
      }),
    ],
    routers: { "service/auto": { members: ["acme/small", "acme/large"], quality: ["acme/large"] } },
  });
});
afterAll(async () => {
  await gateway.stop();
  upstream.stop();
});

const served = async (fields: Record<string, unknown>): Promise<string | null> =>
  (await gateway.post("/chat/completions", chatRequest(fields))).headers.get("x-service-model");

describe("a request for a routing preset", () => {
  test.each([
    ["service/auto", {}, "acme/large"],
    ["SERVICE/Auto", {}, "acme/large"],
    ["service/auto:floor", {}, "acme/small"],
    [
      "service/auto:floor",
      { tools: [{ type: "function", function: { name: "f" } }] },
      "acme/large",
    ],
    ["service/auto:exacto", {}, "acme/large"],
    ["service/free", {}, "acme/gift:free"],
  ])("%s with %j is served by %s's member", async (id, fields, expected) => {
    expect(await served({ model: id, ...fields })).toBe(expected);
  });

  test("without a reachable member returns 404", async () => {
    const response = await gateway.post(
      "/chat/completions",
      chatRequest({ model: "service/hermes" }),
    );
    expect(await errorOf(response)).toMatchObject({
      status: 404,
      code: "no_upstream",
      message: "No provider can serve service/hermes: no provider offers it here.",
    });
  });
});

describe("the catalog", () => {
  test("lists presets that can serve, with their members, prices and context length", async () => {
    const models = listAt(await (await gateway.get("/models")).json(), "data");
    const presets = models.filter((entry) => textAt(entry, "id").startsWith("service/"));
    expect(presets.map((entry) => textAt(entry, "id"))).toEqual([
      "service/auto",
      "service/cowork",
      "service/free",
      "service/latest",
    ]);
    expect(presets[0]).toMatchObject({
      object: "model",
      provider: "service",
      providers: ["acme"],
      members: ["acme/large", "acme/small"],
      context_length: 100_000,
      pricing: { input_per_1m: 4, billing: "member", lowest: { input_per_1m: 1 } },
      per_upstream: [],
    });
  });

  test("returns a single preset", async () => {
    const preset: unknown = await (await gateway.get("/models/service/free")).json();
    expect(at(preset, "members")).toEqual(["acme/gift:free"]);
    expect(at(preset, "pricing.prompt")).toBe("0");
  });
});
