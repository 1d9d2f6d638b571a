import { afterAll, beforeAll, expect, test } from "bun:test";
import { acmeYaml } from "../process/support/acme-yaml.ts";
import { bootstrapVariables } from "../process/support/bootstrap-variables.ts";
import { at } from "../scenarios/support/at.ts";
import { said } from "../surfaces/support/surface-scene.ts";
import { drawPage } from "../../support/documents/draw-page.ts";
import { encodePicture } from "../../support/documents/encode-picture.ts";
import { testLlmKey, testManagementKey } from "../../support/gateway.ts";
import { endProcesses, startProcess, type GatewayProcess } from "../../support/process.ts";
import { startFaultUpstream, type FaultUpstream } from "../../support/upstream/fault-upstream.ts";
import { json } from "../../support/upstream/steps.ts";

let upstream: FaultUpstream;
let gateway: GatewayProcess;
beforeAll(async () => {
  upstream = await startFaultUpstream();
  upstream.script(json(said("# By a model")));
  gateway = await startProcess({
    environment: bootstrapVariables,
    yaml: acmeYaml(upstream.baseUrl, "ocr: { model: acme/large }\n"),
  });
}, 240_000);
afterAll(async () => {
  await endProcesses();
  upstream.stop();
});

const send = (path: string, { key, body }: { key: string; body: object }) =>
  fetch(`${gateway.url}/v1${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });

async function extract() {
  const picture = await encodePicture.png(
    drawPage({ width: 400, height: 100, texts: [{ text: "A page", x: 40, y: 60 }] }),
  );
  const response = await send("/ocr/extract", {
    key: testLlmKey,
    body: { image: Buffer.from(picture).toString("base64") },
  });
  return {
    status: response.status,
    headers: response.headers,
    body: (await response.json()) as unknown,
  };
}

const costOf = async (headers: Headers): Promise<unknown> => {
  const path = `${gateway.url}/v1/generation/${headers.get("x-service-trace-id")}`;
  return at(
    await (await fetch(path, { headers: { authorization: `Bearer ${testLlmKey}` } })).json(),
    "data.total_cost",
  );
};

test("`ocr: { model }` in switchyard.yaml reads pages with that model at its price", async () => {
  const { status, headers, body } = await extract();
  expect([status, at(body, "text"), at(body, "model")]).toEqual([
    200,
    "# By a model",
    "acme/large",
  ]);
  expect([headers.get("x-service-credential-source"), await costOf(headers)]).toEqual([
    "platform",
    0.000008,
  ]);
});

test("with the caller's own provider key it costs nothing", async () => {
  const saved = await send("/auth/byok", {
    key: testManagementKey,
    body: { provider_id: "acme", api_key: "sk-own-key-number-one" },
  });
  expect(saved.ok).toBe(true);
  const { status, headers } = await extract();
  expect([status, headers.get("x-service-credential-source"), await costOf(headers)]).toEqual([
    200,
    "own_byok",
    0,
  ]);
  expect(upstream.requests.at(-1)?.headers.get("authorization")).toBe(
    "Bearer sk-own-key-number-one",
  );
});
