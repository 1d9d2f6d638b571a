import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { drawPage } from "../../support/documents/draw-page.ts";
import { encodePicture } from "../../support/documents/encode-picture.ts";
import { json } from "../../support/upstream/steps.ts";
import { at } from "../scenarios/support/at.ts";
import type { Scene } from "../scenarios/support/scene.ts";
import { startSurfaceScene } from "./support/surface-scene.ts";

let scene: Scene;
let picture: string;
beforeAll(async () => {
  scene = await startSurfaceScene({
    more: [
      { id: "acme/ocr", context_length: 32_768, pricing: { prompt: "1.00", completion: "2.00" } },
    ],
    settings: { ocrModel: "acme/ocr" },
  });
  const page = drawPage({
    width: 640,
    height: 160,
    texts: [{ text: "A scanned page", x: 40, y: 90, size: 32 }],
  });
  picture = Buffer.from(await encodePicture.png(page)).toString("base64");
});
afterAll(() => scene.end());

const question = { type: "noul", instructions: "?" };

/** A request of each route that asks a provider beside the chat-shaped ones. */
const routes: readonly (readonly [path: string, model: string, body: () => object])[] = [
  ["/embeddings", "acme/embed", () => ({ model: "acme/embed", input: "one" })],
  ["/rerank", "acme/rerank", () => ({ model: "acme/rerank", query: "q", documents: ["one"] })],
  ["/moderations", "acme/llama-guard-4", () => ({ model: "acme/llama-guard-4", input: "one" })],
  [
    "/decisions",
    "acme/decide",
    () => ({ model: "acme/decide", state: "s", questions: { q: question } }),
  ],
  ["/ocr/extract", "acme/ocr", () => ({ image: picture })],
];

const reported = { type: "invalid_request_error", param: "encoding", code: "unknown_encoding" };
const refusal = { error: { message: "'encoding' is not known", ...reported } };

describe.each(routes)("%s", (path, model, body) => {
  test.each([400, 429, 500])(
    "a provider's %d is reported with the provider and its message, and recorded",
    async (status) => {
      const asked = scene.acme.requests.length;
      scene.acme.script(json(refusal, { status }));
      const response = await scene.gateway.post(path, body(), {
        headers: { "x-service-provider": "acme", "gw-skip-cache": "true" },
      });
      const answer: unknown = await response.json();
      expect([scene.acme.requests.length - asked, response.ok]).toEqual([1, false]);
      const header = (name: string): string | null => response.headers.get(name);
      const routing = ["provider-chain", "model", "credential-source"].map((name) =>
        header(`x-service-${name}`),
      );
      expect(routing).toEqual(["acme", model, "platform"]);
      expect(header("server-timing")).toMatch(/^gw;dur=[\d.]+, upstream;dur=[\d.]+;desc="acme"/);
      const traceId = header("x-service-trace-id");
      expect(at(answer, "error.metadata")).toMatchObject({
        trace_id: traceId,
        fault: "upstream",
        upstream_backend: "acme",
        upstream_message: refusal.error.message,
        upstream_error: reported,
      });
      await scene.gateway.app.storage.commits.flush();
      for (const id of [`gen_${traceId}`, String(traceId)]) {
        const record = await scene.gateway.get(`/generation/${id}`);
        expect([record.status, at(await record.json(), "data.attempts.0.provider")]).toEqual([
          200,
          "acme",
        ]);
      }
    },
  );
});
