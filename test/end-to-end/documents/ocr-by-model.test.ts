import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import sharp from "sharp";
import { at } from "../scenarios/support/at.ts";
import { expectSoundBooks } from "../scenarios/support/expect-sound-books.ts";
import { settledRow, settledRows } from "../scenarios/support/settled-rows.ts";
import { shortTimeouts, startScene, type Scene } from "../scenarios/support/scene.ts";
import { inOrder, said } from "../surfaces/support/surface-scene.ts";
import { drawPage } from "../../support/documents/draw-page.ts";
import { encodePicture, type pictureFormats } from "../../support/documents/encode-picture.ts";
import { writePdf } from "../../support/documents/write-pdf.ts";
import { provider, startGateway, testManagementKey } from "../../support/gateway.ts";
import type { RecordedRequest } from "../../support/upstream/recorded-request.ts";
import { cut, json, stall, type Script } from "../../support/upstream/steps.ts";

/** USD per million tokens in and out; the backup's are twice that. */
const models = (prompt: string, completion: string) => [
  { id: "acme/ocr", context_length: 32_768, pricing: { prompt, completion } },
  { id: "acme/embed", surface: "embeddings" },
];

const providers = (first: string, second: string) => [
  provider({
    id: "acme",
    name: "Acme Inference",
    base_url: first,
    dialect: "openai-chat",
    api_key: "upstream-secret",
    timeouts_ms: shortTimeouts,
    models: models("1.00", "2.00"),
  }),
  provider({
    id: "backup",
    name: "Backup Inference",
    base_url: second,
    dialect: "anthropic-messages",
    api_key: "upstream-secret",
    models: models("2.00", "4.00"),
  }),
];

let scene: Scene;
beforeAll(
  async () => void (scene = await startScene({ providers, settings: { ocrModel: "ACME/ocr" } })),
);
beforeEach(() => scene.acme.script(json(said("# Read\n\nby a model"))));
afterEach(() => expectSoundBooks(scene.gateway));
afterAll(() => scene.end());

const page = {
  width: 640,
  height: 160,
  texts: [{ text: "A scanned page", x: 40, y: 90, size: 32 }],
};
const picture = (format: (typeof pictureFormats)[number] = "png", changes: object = {}) =>
  encodePicture[format](drawPage({ ...page, ...changes }));

/**
 * Asks acme first, where nothing else is wished: which of two providers a draw begins with is not
 * what is tested here.
 */
async function extract(bytes: Uint8Array, wishes: Record<string, string> = {}) {
  const headers = { ...inOrder.headers, ...wishes };
  const response = await scene.gateway.post(
    "/ocr/extract",
    { image: Buffer.from(bytes).toString("base64") },
    { headers },
  );
  return {
    status: response.status,
    headers: response.headers,
    body: (await response.json()) as unknown,
  };
}

/**
 * What was asked in one request of OpenAI's dialect: words, and the picture behind its data URL.
 */
function askedOf(request: RecordedRequest | undefined): {
  text: string;
  url: string;
  picture: Uint8Array;
  body: unknown;
} {
  const body: unknown = request?.json();
  const url = String(at(body, "messages.0.content.1.image_url.url"));
  return {
    text: String(at(body, "messages.0.content.0.text")),
    url,
    picture: Buffer.from(url.replace(/^[^,]*,/, ""), "base64"),
    body,
  };
}

const newRequests = async (work: () => Promise<void>): Promise<readonly RecordedRequest[]> => {
  const before = scene.acme.requests.length;
  await work();
  return scene.acme.requests.slice(before);
};

describe("a file is read by the configured model", () => {
  test("an image is sent as JPEG with a prompt, and costs what the model costs", async () => {
    let reply: Awaited<ReturnType<typeof extract>> | undefined;
    const wishes = { "x-service-balance-after-debit": "true" };
    const [request, ...more] = await newRequests(
      async () => void (reply = await extract(await picture(), wishes)),
    );
    expect([more.length, request?.path]).toEqual([0, "/v1/chat/completions"]);
    const asked = askedOf(request);
    expect(asked.url).toStartWith("data:image/jpeg;base64,");
    expect(await sharp(asked.picture).metadata()).toMatchObject({
      format: "jpeg",
      width: 640,
      height: 160,
    });
    expect(asked.text).toContain("Markdown");
    expect(asked.body).toMatchObject({ model: "ocr", temperature: 0 });
    expect(reply?.body).toEqual({
      text: "# Read\n\nby a model",
      format: "markdown",
      model: "acme/ocr",
      tokens: 5,
    });
    const headerNames = [
      "x-service-model",
      "x-service-upstream-model",
      "x-service-provider-chain",
      "x-service-credential-source",
    ];
    expect(headerNames.map((name) => reply?.headers.get(name))).toEqual([
      "acme/ocr",
      "ocr",
      "acme",
      "platform",
    ]);
    expect(reply?.headers.get("x-service-credits-charged")).toBe("0.000014");
    const row = await settledRow(scene.gateway, reply?.headers.get("x-service-trace-id") ?? null);
    expect(row).toMatchObject({
      model: "acme/ocr",
      provider: "acme",
      promptTokens: 10,
      completionTokens: 2,
      costNano: 14_000n,
    });
    const counted = (await scene.gateway.metrics.text())
      .split("\n")
      .filter((line) => line.startsWith("switchyard_requests_total{"));
    expect(counted).toEqual([
      'switchyard_requests_total{endpoint="/v1/ocr/extract",status="2xx"} 1',
    ]);
  });

  test.each(["tiff", "bmp", "gif", "webp", "jpeg"] as const)(
    "%s is sent as JPEG too, scaled down to a useful size",
    async (format) => {
      const bytes = await picture(format, { width: 3_000, height: 300 });
      const [request] = await newRequests(async () => void (await extract(bytes)));
      expect(await sharp(askedOf(request).picture).metadata()).toMatchObject({
        format: "jpeg",
        width: 2_400,
        height: 240,
      });
    },
  );

  test("only pages of a PDF without text are sent to the model, as one charge", async () => {
    const [width, height] = [620, 877];
    const jpeg = await encodePicture.jpeg(drawPage({ width, height, texts: page.texts }));
    const scan = { jpeg, width, height };
    const pdf = writePdf([
      scan,
      { texts: [{ text: "A page with text of its own", x: 60, y: 780 }] },
      scan,
    ]);
    let answered = 0;
    scene.acme.script(() => json(said(`\`\`\`markdown\nscan ${(answered += 1)}\n\`\`\``)));
    let reply: Awaited<ReturnType<typeof extract>> | undefined;
    const before = (await settledRows(scene.gateway)).length;
    const requests = await newRequests(async () => void (reply = await extract(pdf)));
    expect(requests.length).toBe(2);
    expect(String(at(reply?.body, "text"))).toMatch(
      /^scan [12]\n\nA page with text of its own\n\nscan [12]$/,
    );
    const rows = (await settledRows(scene.gateway)).slice(before);
    expect(rows.map(({ promptTokens, costNano }) => [promptTokens, costNano])).toEqual([
      [20, 28_000n],
    ]);
  });

  test("a PDF with text is read locally, at no charge", async () => {
    const pdf = writePdf([{ texts: [{ text: "A page with text of its own", x: 60, y: 780 }] }]);
    const before = (await settledRows(scene.gateway)).length;
    let reply: Awaited<ReturnType<typeof extract>> | undefined;
    expect(await newRequests(async () => void (reply = await extract(pdf)))).toEqual([]);
    expect(reply?.body).toMatchObject({ text: "A page with text of its own", model: "acme/ocr" });
    expect([
      reply?.headers.get("x-service-provider-chain"),
      (await settledRows(scene.gateway)).length,
    ]).toEqual([null, before]);
  });

  test("a blank page returns an empty text", async () => {
    scene.acme.script(json(said("")));
    expect((await extract(await picture("png", { texts: [] }))).body).toMatchObject({
      text: "",
      tokens: 0,
    });
  });

  test("when the first provider fails the next one reads the file, in its own dialect", async () => {
    scene.acme.script(json({}, { status: 500 }));
    scene.backup.script(
      json({
        id: "msg_1",
        type: "message",
        role: "assistant",
        model: "ocr",
        content: [{ type: "text", text: "read by Messages" }],
        stop_reason: "end_turn",
        stop_sequence: null,
        usage: { input_tokens: 7, output_tokens: 3 },
      }),
    );
    const { body, headers } = await extract(await picture());
    expect([at(body, "text"), headers.get("x-service-provider-chain")]).toEqual([
      "read by Messages",
      "acme->backup",
    ]);
    expect(scene.backup.requests.at(-1)?.json()).toMatchObject({
      messages: [
        {
          content: [
            { type: "text" },
            { type: "image", source: { type: "base64", media_type: "image/jpeg" } },
          ],
        },
      ],
    });
  });
});

const said500 = json({ error: { message: "broken" } }, { status: 500 });

describe("a failing OCR model", () => {
  const faults: [name: string, script: Script, more: object][] = [
    ["a 500", said500, { metadata: { upstream_status: 500, upstream_message: "broken" } }],
    ["a 401", json({ error: { message: "who?" } }, { status: 401 }), {}],
    [
      "a 400",
      json({ error: { message: "too many pixels" } }, { status: 400 }),
      { metadata: { upstream_message: "too many pixels" } },
    ],
    [
      "a 429",
      json({ error: { message: "slow down" } }, { status: 429, headers: { "retry-after": "7" } }),
      {},
    ],
    ["an answer without choices", json({ choices: [] }), {}],
    ["a truncated page", json(said("half a pa", { finish_reason: "length" })), {}],
    ["a filtered page", json(said("", { finish_reason: "content_filter" })), {}],
    ["a cut connection", [cut()], {}],
    ["silence", [stall()], {}],
  ];
  test.each(faults)("returns 502 for %s and charges nothing", async (_, script, more) => {
    scene.acme.script(script);
    const before = (await settledRows(scene.gateway)).length;
    const { status, body } = await extract(await picture(), { "x-service-provider": "acme" });
    expect([status, at(body, "error.code"), at(body, "error.metadata.fault")]).toEqual([
      502,
      "ocr_upstream_failed",
      "upstream",
    ]);
    expect(at(body, "error.metadata")).toMatchObject({
      upstream_backend: "acme",
      ...(more as { metadata?: object }).metadata,
    });
    expect((await settledRows(scene.gateway)).length).toBe(before);
  });

  test("recommends a retry only for a temporary failure, with Retry-After", async () => {
    scene.acme.script(
      json({ error: { message: "slow down" } }, { status: 429, headers: { "retry-after": "7" } }),
    );
    const { headers } = await extract(await picture(), { "x-service-provider": "acme" });
    expect([headers.get("retry-after"), headers.get("x-should-retry")]).toEqual(["7", null]);
    scene.acme.script(json({ error: { message: "too many pixels" } }, { status: 400 }));
    expect(
      (await extract(await picture(), { "x-service-provider": "acme" })).headers.get(
        "x-should-retry",
      ),
    ).toBe("false");
  });

  test("lists every attempt when both providers fail", async () => {
    scene.acme.script(said500);
    scene.backup.script(said500);
    const { body } = await extract(await picture());
    expect(at(body, "error.code")).toBe("ocr_upstream_failed");
    expect(at(body, "error.metadata.upstream_attempts")).toMatchObject([
      { backend: "acme" },
      { backend: "backup" },
    ]);
  });

  test("returns ocr_extraction_error for an unreadable file without asking a provider", async () => {
    const requests = await newRequests(async () => {
      const { body } = await extract(Buffer.from("%PDF-1.7 and nothing of the kind"));
      expect(body).toMatchObject({ error: { code: "ocr_extraction_error" } });
    });
    expect(requests).toEqual([]);
  });
});

describe("access to the configured OCR model", () => {
  test("returns 403 for a key that may not use the model", async () => {
    const created = await fetch(`${scene.gateway.baseUrl}/keys`, {
      method: "POST",
      headers: { authorization: `Bearer ${testManagementKey}`, "content-type": "application/json" },
      body: JSON.stringify({ name: "narrow", allowed_models: ["acme/other"] }),
    });
    const { key } = (await created.json()) as { key: string };
    const { status, body } = await extract(await picture(), { authorization: `Bearer ${key}` });
    expect([status, at(body, "error.code")]).toEqual([403, "forbidden"]);
  });

  test("returns 402 without credits", async () => {
    const poor = await startScene({
      providers,
      settings: {
        ocrModel: "acme/ocr",
        bootstrap: {
          llmKey: "sk-svc-v1-poorpoorpoorpoorpoorpoorpoorpoor",
          managementKey: testManagementKey,
          creditsNanoUsd: 0n,
          plan: "free",
        },
      },
    });
    const image = Buffer.from(await picture()).toString("base64");
    const headers = { authorization: "Bearer sk-svc-v1-poorpoorpoorpoorpoorpoorpoorpoor" };
    const response = await poor.gateway.post("/ocr/extract", { image }, { headers });
    expect([
      response.status,
      at(await response.json(), "error.code"),
      poor.acme.requests.length,
    ]).toEqual([402, "insufficient_balance", 0]);
    await poor.end();
  });

  test("returns 500 and logs why when no provider of the model has a credential", async () => {
    const bare = provider({
      id: "acme",
      base_url: "http://127.0.0.1:9",
      dialect: "openai-chat",
      models: models("1", "2"),
    });
    const gateway = await startGateway({ providers: [bare], ocrModel: "acme/ocr" });
    const response = await gateway.post("/ocr/extract", {
      image: Buffer.from(await picture()).toString("base64"),
    });
    expect([response.status, at(await response.json(), "error.code")]).toEqual([
      500,
      "missing_workers_ai_binding",
    ]);
    expect(gateway.logLines.join("\n")).toContain("the gateway has no key of acme");
    await gateway.stop();
  });
});

test.each([
  ["acme/none", "there is no such model in the catalog"],
  ["acme/embed", "this one serves embeddings"],
  ["service/auto", "is a pool"],
])("%s cannot be configured as the OCR model", async (ocrModel, message) => {
  await expect(
    startGateway({ providers: providers("http://127.0.0.1:9", "http://127.0.0.1:9"), ocrModel }),
  ).rejects.toThrow(message);
});
