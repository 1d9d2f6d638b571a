import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { fileURLToPath } from "node:url";
import { drawPage } from "../../support/documents/draw-page.ts";
import { encodePicture, pictureFormats } from "../../support/documents/encode-picture.ts";
import { pngBomb } from "../../support/documents/hostile/hostile-png.ts";
import { writePdf } from "../../support/documents/write-pdf.ts";
import { startGateway, testLlmKey, type TestGateway } from "../../support/gateway.ts";

const mib = 1024 * 1024;
const scriptedChild = fileURLToPath(
  new URL("../../support/documents/scripted-child.ts", import.meta.url),
);

let gateway: TestGateway;
/** A gateway whose converter does as a file says. */
let scripted: TestGateway;
/** One that waits for its converter for a moment only, which may be too little for its start. */
let hasty: TestGateway;
beforeAll(async () => {
  gateway = await startGateway();
  const pool = { script: scriptedChild, childrenMax: 1, waitingMax: 2 };
  scripted = await startGateway({}, { converterPool: { ...pool, silenceMs: 200_000 } });
  hasty = await startGateway({}, { converterPool: { ...pool, silenceMs: 500 } });
});
afterAll(() => Promise.all([gateway.stop(), scripted.stop(), hasty.stop()]));

interface Refusal {
  status: number;
  code: string;
  param: string | null;
  fault: string;
  message: string;
  retry: string | null;
}

interface ErrorBody {
  error: { code: string; message: string; param: string | null; metadata: { fault: string } };
}

async function refusalOf(response: Response): Promise<Refusal> {
  const { error } = (await response.json()) as ErrorBody;
  return {
    status: response.status,
    code: error.code,
    param: error.param,
    fault: error.metadata.fault,
    message: error.message,
    retry: response.headers.get("x-should-retry"),
  };
}

const sendForm = (
  body: string | FormData,
  headers: Record<string, string> = {},
  to = gateway,
): Promise<Response> =>
  fetch(`${to.baseUrl}/ocr/extract`, {
    method: "POST",
    headers: { authorization: `Bearer ${testLlmKey}`, ...headers },
    body,
  });

function formOf(name: string, value: string | Uint8Array): FormData {
  const form = new FormData();
  if (typeof value === "string") form.set(name, value);
  else form.set(name, new File([new Uint8Array(value)], "scan.png"));
  return form;
}

const extract = async (bytes: Uint8Array, to = gateway): Promise<Refusal> =>
  refusalOf(await sendForm(formOf("image", bytes), {}, to));

describe("invalid OCR requests", () => {
  const tooLargeBase64 = "A".repeat(Math.ceil((5 * mib + 3) / 3) * 4);
  test.each<[name: string, body: unknown, status: number, code: string, param: string | null]>([
    ["no image", {}, 400, "missing_required_fields", "image"],
    ["an empty image", { image: "" }, 400, "missing_required_fields", "image"],
    ["an image that is not a string", { image: 5 }, 400, "invalid_request_body", "image"],
    [
      "a filename that is not a string",
      { image: "AAAA", filename: 1 },
      400,
      "invalid_request_body",
      "filename",
    ],
    ["a list", [], 400, "invalid_request_body", null],
    ["invalid JSON", "{image", 400, "invalid_request_body", null],
    ["invalid base64", { image: "%%%%" }, 400, "invalid_image_encoding", "image"],
    ["base64 of an impossible length", { image: "AAAAA" }, 400, "invalid_image_encoding", "image"],
    [
      "a data URL in plain text",
      { image: "data:image/png,abc" },
      400,
      "invalid_image_encoding",
      "image",
    ],
    [
      "a data URL without bytes",
      { image: "data:image/png;base64," },
      400,
      "invalid_image_encoding",
      "image",
    ],
    ["a file of more than 5 MiB", { image: tooLargeBase64 }, 413, "image_too_large", "image"],
    [
      "a body too large for a file of 5 MiB",
      { image: "A".repeat(8 * mib) },
      413,
      "image_too_large",
      "image",
    ],
  ])("%s", async (_, body, status, code, param) => {
    expect(await refusalOf(await gateway.post("/ocr/extract", body))).toMatchObject({
      status,
      code,
      param,
    });
  });

  test.each<[name: string, form: () => FormData, status: number, code: string]>([
    [
      "without an image field",
      () => formOf("file", new Uint8Array(9)),
      400,
      "missing_required_fields",
    ],
    [
      "with a text in the image field",
      () => formOf("image", "iVBORw0KGgo="),
      400,
      "invalid_image_field",
    ],
    [
      "with a file of more than 5 MiB",
      () => formOf("image", new Uint8Array(5 * mib + 1)),
      413,
      "image_too_large",
    ],
  ])("a form %s returns an error", async (_, form, status, code) => {
    expect(await refusalOf(await sendForm(form()))).toMatchObject({ status, code, param: "image" });
  });

  test("an invalid form returns 400", async () => {
    const refused = await refusalOf(
      await sendForm("nothing", { "content-type": "multipart/form-data; boundary=x" }),
    );
    expect(refused).toMatchObject({ status: 400, code: "invalid_request_body" });
  });

  test("an invalid key returns 401", async () => {
    const response = await gateway.post(
      "/ocr/extract",
      {},
      { headers: { authorization: "Bearer sk-svc-v1-none" } },
    );
    expect(await refusalOf(response)).toMatchObject({ status: 401, code: "invalid_api_key" });
  });

  test("both content types are in the OpenAPI document", async () => {
    const document = (await (await gateway.get("/openapi.json")).json()) as {
      paths: Record<string, { post?: unknown }>;
    };
    expect(document.paths["/ocr/extract"]).toMatchObject({
      post: {
        requestBody: {
          content: {
            "application/json": { schema: { required: ["image"] } },
            "multipart/form-data": {
              schema: { properties: { image: { type: "string", format: "binary" } } },
            },
          },
        },
      },
    });
  });

  test("invalid requests start no child process", async () => {
    expect(await gateway.metrics.text()).not.toContain("conversion_duration_seconds_count");
  });
});

const isRefusedFile = {
  status: 502,
  code: "ocr_extraction_error",
  param: "image",
  fault: "client",
  retry: "false",
};

describe("unreadable files", () => {
  test("of an unknown kind are refused, whatever their name", async () => {
    expect(await extract(Buffer.from("Just a text that calls itself scan.png"))).toMatchObject(
      isRefusedFile,
    );
    expect(await extract(new Uint8Array())).toMatchObject(isRefusedFile);
  });

  test.each(pictureFormats)("a %s truncated after its header is refused", async (format) => {
    const whole = await encodePicture[format](
      drawPage({ width: 200, height: 60, texts: [{ text: "text", x: 20, y: 40 }] }),
    );
    expect(await extract(whole.subarray(0, 30))).toMatchObject(isRefusedFile);
  });

  test("a truncated PDF and an invalid one are refused", async () => {
    const whole = writePdf([{ texts: [{ text: "some text of a page", x: 60, y: 700 }] }]);
    expect(await extract(whole.subarray(0, 60))).toMatchObject(isRefusedFile);
    expect(await extract(Buffer.from("%PDF-1.7 and nothing of the kind"))).toMatchObject(
      isRefusedFile,
    );
  });

  test("a small file that decompresses to 400 million pixels is refused without decompressing", async () => {
    const small = pngBomb(20_000);
    expect(small.byteLength).toBeLessThan(100_000);
    expect(await extract(small)).toMatchObject({
      ...isRefusedFile,
      message: expect.stringContaining("pixels"),
    });
  });

  test("a PDF with too many pages is refused", async () => {
    const pdf = writePdf(Array.from({ length: 201 }, () => ({ texts: [] })));
    expect(await extract(pdf)).toMatchObject({
      ...isRefusedFile,
      message: expect.stringContaining("201 pages"),
    });
  });

  test("are counted in the duration metric", async () => {
    expect(await gateway.metrics.text()).toMatch(
      /switchyard_conversion_duration_seconds_count\{format="png",outcome="refused"\} 2/,
    );
  });
});

const act = (name: string): Uint8Array => Buffer.from(`%PDF-${name}`);

describe("a converter that fails", () => {
  const wanted = { status: 502, code: "ocr_upstream_failed", fault: "gateway", retry: null };
  const ways = [["crash"], ["leave"], ["failed"]];
  test.each(ways)("by %s returns 502, and the next file is served", async (name) => {
    expect(await extract(act(name), scripted)).toMatchObject(wanted);
    expect((await sendForm(formOf("image", act("any")), {}, scripted)).status).toBe(200);
  });

  test.each([["hang"], ["silence"]])("by %s returns 502", async (name) => {
    expect(await extract(act(name), hasty)).toMatchObject(wanted);
  });

  test("for lack of its language data returns 500 and logs it", async () => {
    const wanted = {
      status: 500,
      code: "missing_workers_ai_binding",
      fault: "gateway",
      retry: "false",
    };
    expect(await extract(act("unfit"), scripted)).toMatchObject(wanted);
    expect(scripted.logLines.join("\n")).toContain("no language data");
  });

  test("does not block other requests, and excess files are refused as busy", async () => {
    const hanging = Array.from({ length: 5 }, () => extract(act("silence"), hasty));
    const credits = await hasty.get("/credits");
    expect(credits.status).toBe(200);
    const refusals = await Promise.all(hanging);
    const messages = refusals.map(
      ({ code, message }) => `${code} ${/busy/.test(message) ? "busy" : "late"}`,
    );
    expect(messages.filter((each) => each.endsWith("busy")).length).toBeGreaterThanOrEqual(2);
    expect(messages.every((message) => message.startsWith("ocr_upstream_failed"))).toBe(true);
  });
});
