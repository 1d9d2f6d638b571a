import { afterAll, beforeAll } from "bun:test";
import { fileURLToPath } from "node:url";
import { startGateway, testLlmKey, type TestGateway } from "../../../support/gateway.ts";
import { errorTable, wrongCredentials } from "../support/error-table.ts";

const path = "/ocr/extract";
const mib = 1024 * 1024;
const scriptedChild = fileURLToPath(
  new URL("../../../support/documents/scripted-child.ts", import.meta.url),
);

let gateway: TestGateway;
/** A gateway whose converter does as a file says. */
let scripted: TestGateway;
/** One that waits for its converter for a moment only, which may be too little for its start. */
let hasty: TestGateway;
/** A gateway with one request a minute. */
let narrow: TestGateway;
beforeAll(async () => {
  gateway = await startGateway();
  const pool = { script: scriptedChild, childrenMax: 1 };
  scripted = await startGateway({}, { converterPool: { ...pool, silenceMs: 200_000 } });
  hasty = await startGateway({}, { converterPool: { ...pool, silenceMs: 500 } });
  narrow = await startGateway({ plans: { enterprise: { perMinute: 1 } } });
});
afterAll(() => Promise.all([gateway, scripted, hasty, narrow].map((each) => each.stop())));

const ask = (body: unknown) => () => gateway.post(path, body);

/** A request in whose form this stands in the field `image`. */
const form =
  (image: string | Uint8Array | undefined, to = () => gateway) =>
  () => {
    const body = new FormData();
    if (typeof image === "string") body.set("image", image);
    else if (image !== undefined) body.set("image", new File([new Uint8Array(image)], "scan.png"));
    return fetch(to().baseUrl + path, {
      method: "POST",
      headers: { authorization: `Bearer ${testLlmKey}` },
      body,
    });
  };

const noForm = () =>
  fetch(gateway.baseUrl + path, {
    method: "POST",
    headers: {
      authorization: `Bearer ${testLlmKey}`,
      "content-type": "multipart/form-data; boundary=x",
    },
    body: "nothing",
  });

const whenConverter = (act: string) =>
  form(Buffer.from(`%PDF-${act}`), () => (act === "hang" ? hasty : scripted));

async function aboveTheWindow(): Promise<Response> {
  await narrow.post(path, {});
  return narrow.post(path, {});
}

const missing = [400, "missing_required_fields", "invalid_request_error"] as const;
const invalid = [400, "invalid_request_body", "invalid_request_error"] as const;
const badEncoding = [400, "invalid_image_encoding", "invalid_request_error"] as const;
const tooLarge = [413, "image_too_large", "request_too_large"] as const;
const unreadable = [502, "ocr_extraction_error", "upstream_error"] as const;
const failed = [502, "ocr_upstream_failed", "upstream_error"] as const;

errorTable(
  [
    "400 missing_required_fields",
    "400 invalid_request_body",
    "400 invalid_image_encoding",
    "400 invalid_image_field",
    "401 invalid_api_key",
    "413 image_too_large",
    "500 missing_workers_ai_binding",
    "502 ocr_upstream_failed",
    "502 ocr_extraction_error",
  ],
  [
    [...missing, "no image", ask({})],
    [...missing, "an empty image", ask({ image: "" })],
    [...missing, "a form without the field", form(undefined)],
    [...invalid, "no JSON", ask("{image")],
    [...invalid, "a list", ask([])],
    [...invalid, "an image that is a number", ask({ image: 5 })],
    [...invalid, "a filename that is a number", ask({ image: "AAAA", filename: 5 })],
    [...invalid, "a form that is none", noForm],
    [...badEncoding, "no base64", ask({ image: "%%%%" })],
    [...badEncoding, "base64 of no length", ask({ image: "AAAAA" })],
    [...badEncoding, "a data URL in plain text", ask({ image: "data:image/png,abc" })],
    [
      400,
      "invalid_image_field",
      "invalid_request_error",
      "a form's field that is a text",
      form("iVBORw0KGgo="),
    ],
    ...wrongCredentials(() => gateway, { path, body: { image: "AAAA" } }),
    [
      ...tooLarge,
      "5 MiB and a byte in JSON",
      ask({ image: Buffer.alloc(5 * mib + 1).toString("base64") }),
    ],
    [...tooLarge, "5 MiB and a byte in a form", form(new Uint8Array(5 * mib + 1))],
    [...tooLarge, "a body that cannot hold a file of 5 MiB", ask({ image: "A".repeat(8 * mib) })],
    [429, "rate_limit_exceeded", "rate_limit_error", "above the plan's window", aboveTheWindow],
    [
      500,
      "missing_workers_ai_binding",
      "internal_server_error",
      "an installation without its parts",
      whenConverter("unfit"),
    ],
    [...unreadable, "a file of no known kind", form(Buffer.from("a text that calls itself a PNG"))],
    [...unreadable, "an empty file", form(new Uint8Array())],
    [
      ...unreadable,
      "a picture that is cut",
      form(Buffer.from("\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "latin1")),
    ],
    [...unreadable, "a PDF that is none", form(Buffer.from("%PDF-1.7 and nothing of the kind"))],
    [...failed, "a converter that crashes", whenConverter("crash")],
    [...failed, "a converter that hangs", whenConverter("hang")],
    [...failed, "a converter that is out of memory", whenConverter("failed")],
  ],
);
