import { z } from "zod";
import { converterModel, type Conversion } from "../../documents/converter/converter-pool.ts";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import { lazily } from "../../http/endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import { tokensOfTexts } from "../../inference/surfaces/surface-call.ts";
import { brandHeader } from "../../platform/kernel/brand.ts";
import { GatewayError, type ErrorCode } from "../../platform/kernel/errors.ts";
import type { Dependencies } from "../dependencies.ts";
import type { Answer } from "../../http/reply.ts";
import type { HttpRequest } from "../../http/served-request.ts";
import { ocrCall, ocrTokens, type OcrPage } from "../../inference/surfaces/ocr/ocr-call.ts";
import { answerCall } from "../inference/answer-call.ts";
import type { LlmKeyCaller } from "../../identity/keys/caller.ts";
import { originOf, whileTokensCounted } from "../inference/read-call.ts";
import { readBodyBytes } from "../../http/bodies/read-body.ts";

const mib = 1024 * 1024;

/** The largest file (contract: "Limits"), in bytes. */
const fileBytesMax = 5 * mib;

/**
 * The largest body, in bytes: a file in base64, possibly with line breaks, and what surrounds it.
 */
const uploadBodyBytesMax = 7.25 * mib;

const tooLarge = (): GatewayError =>
  new GatewayError(
    "image_too_large",
    `The file is larger than the limit of ${fileBytesMax} bytes. Send a smaller one, or fewer pages.`,
    {
      param: "image",
      metadata: { limit_bytes: fileBytesMax },
    },
  );

const invalidBody = (message: string, param?: string): GatewayError =>
  new GatewayError("invalid_request_body", message, param === undefined ? {} : { param });

/** Returns a refusal that names the field with the file. */
const refusedImage = (code: ErrorCode, message: string): GatewayError =>
  new GatewayError(code, `image: ${message}`, { param: "image" });

const missingImage = (): GatewayError =>
  refusedImage(
    "missing_required_fields",
    "is required. Send a file as base64, as a data URL, or as a form's file.",
  );

/**
 * Reads the file of an OCR request, sent as JSON or as a form (RFC 7578). Throws `GatewayError`.
 */
async function readUpload(request: HttpRequest): Promise<Uint8Array> {
  const type = request.headers.get("content-type") ?? "";
  const isForm = /^multipart\/form-data\b/i.test(type);
  const body = await readBodyBytes(request, uploadBodyBytesMax, { json: !isForm }).catch(
    (error: unknown) => {
      throw error instanceof GatewayError && error.metadata["limit_bytes"] === uploadBodyBytesMax
        ? tooLarge()
        : error;
    },
  );
  const bytes = isForm ? await fileOfForm(body, type) : fileOfJson(body);
  if (bytes.byteLength > fileBytesMax) throw tooLarge();
  return bytes;
}

async function fileOfForm(body: Uint8Array<ArrayBuffer>, type: string): Promise<Uint8Array> {
  const form = await new Response(body, { headers: { "content-type": type } })
    .formData()
    .catch((error: unknown) => {
      const message =
        "The body is not a valid form. Send multipart/form-data with the file in the field image.";
      throw new GatewayError("invalid_request_body", message, { cause: error });
    });
  const image = form.get("image");
  if (image === null) throw missingImage();
  if (typeof image === "string") {
    throw refusedImage(
      "invalid_image_field",
      "is a text. Send it as a file, with a filename in its Content-Disposition.",
    );
  }
  return new Uint8Array(await image.arrayBuffer());
}

function fileOfJson(body: Uint8Array): Uint8Array {
  const fields = objectOf(body);
  const { image, filename } = fields;
  if (image === undefined || image === null || image === "") throw missingImage();
  if (typeof image !== "string")
    throw invalidBody("image: must be a string: a file as base64 or as a data URL.", "image");
  const isNameless = filename === undefined || filename === null;
  if (!isNameless && typeof filename !== "string")
    throw invalidBody("filename: must be a string.", "filename");
  return bytesOfBase64(base64Of(image));
}

function objectOf(body: Uint8Array): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder().decode(body));
  } catch (error) {
    const message = 'The body is not valid JSON. Send {"image": "<base64 or data URL>"}.';
    throw new GatewayError("invalid_request_body", message, { cause: error });
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw invalidBody("The body must be one JSON object.");
  return value as Record<string, unknown>;
}

const invalidEncoding = (reason: string): GatewayError =>
  refusedImage(
    "invalid_image_encoding",
    `${reason}. Send the file's bytes as base64, or as a data URL with ;base64.`,
  );

/** Returns what follows the comma of a data URL (RFC 2397), or the text itself. */
function base64Of(image: string): string {
  if (!/^data:/i.test(image)) return image;
  const comma = image.indexOf(",");
  if (comma < 0 || !/;base64$/i.test(image.slice(0, comma).trimEnd()))
    throw invalidEncoding("is a data URL without base64");
  return image.slice(comma + 1);
}

/**
 * Decodes base64 in either alphabet (RFC 4648), with or without padding and line breaks. Its size
 * is checked before it is decoded.
 */
function bytesOfBase64(text: string): Uint8Array {
  const digits = text.replace(/[\s]+/g, "").replace(/={0,2}$/, "");
  if (digits === "" || digits.length % 4 === 1 || !/^[A-Za-z0-9+/_-]*$/.test(digits))
    throw invalidEncoding("is not base64");
  if (Math.floor((digits.length * 3) / 4) > fileBytesMax) throw tooLarge();
  return Buffer.from(digits, "base64");
}

const modelHeader = brandHeader("Model").toLowerCase();

const uploadSchema = z.object({
  image: z.string().describe("The file as base64 or as a data URL; at most 5 MiB decoded."),
  filename: z
    .string()
    .optional()
    .describe("A hint only; the type is detected from the bytes. Default image.png."),
});

const answerSchema = lazily(() =>
  z.object({
    text: z.string().describe("The text as Markdown."),
    format: z.literal("markdown"),
    model: z
      .string()
      .describe(`The converter: ${converterModel}, or the model that the operator has configured.`),
    tokens: z
      .int()
      .describe("Length of the text in tokens, estimated at four characters per token."),
  }),
);

/** Returns the text of a picture or a PDF. */
export const ocrExtract = defineEndpoint<
  Pick<Dependencies, "inference" | "documents" | "ocrModel" | "counters" | "clock">
>({
  method: "POST",
  path: "/ocr/extract",
  base: "api",
  access: { llmKey: true },
  counting: "at-door",
  bodyBytesMax: uploadBodyBytesMax,
  summary: "Convert an image or a PDF to Markdown.",
  description:
    "Send JSON, or multipart/form-data with the file in the field `image`. Accepts PNG, JPEG, GIF, WebP, BMP, TIFF and PDF, " +
    "detected from the bytes. Headings, lists and tables are kept if the layout shows them. Free of charge, unless the operator has " +
    "configured a model that reads pages; then pages without embedded text cost what the model costs.",
  tag: "Inference",
  rawBody: uploadSchema,
  formBody: z.object({ image: z.string().meta({ format: "binary" }) }),
  response: answerSchema,
  encodeError: encodeContractError,
  async handle(context, dependencies) {
    const { request } = context;
    const {
      documents: { converter },
      ocrModel,
    } = dependencies;
    const conversion = await converter.convert(await readUpload(request), request.signal, {
      leavesPictures: ocrModel !== undefined,
    });
    if (conversion.kind === "prepared")
      return readByModel(context, { model: ocrModel ?? "", pages: conversion.pages }, dependencies);
    if (conversion.kind !== "converted") throw errorOf(conversion);
    const model = ocrModel ?? converterModel;
    const { markdown } = conversion;
    return context.json(
      { text: markdown, format: "markdown", model, tokens: tokensOfTexts([markdown]) },
      { headers: { [modelHeader]: model } },
    );
  },
});

function errorOf(
  conversion: Exclude<Conversion, { kind: "converted" | "prepared" }>,
): GatewayError {
  if (conversion.kind === "refused") {
    const message = `The text could not be extracted: ${conversion.message}`;
    return new GatewayError("ocr_extraction_error", message, { param: "image", retry: false });
  }
  if (conversion.kind === "unfit") {
    return new GatewayError(
      "missing_workers_ai_binding",
      "This server is not set up to read such files. Tell its operator.",
      {
        detail: conversion.message,
      },
    );
  }
  return new GatewayError("ocr_upstream_failed", failureTexts[conversion.reason], {
    detail: conversion.message,
  });
}

const failureTexts: Record<Extract<Conversion, { kind: "failed" }>["reason"], string> = {
  crashed: "The converter failed on this file. Retry once; a file that fails again cannot be read.",
  timed_out:
    "The converter took too long on this file. Retry, or send fewer pages or a smaller picture.",
  busy: "Every converter is busy. Retry in a few seconds.",
  abandoned: "The conversion was given up. Retry.",
};

/**
 * Reads a file's pages with the model that the operator names, charged at that model's price.
 * Throws `GatewayError`.
 */
async function readByModel(
  context: RequestContext,
  { model, pages }: { model: string; pages: readonly OcrPage[] },
  dependencies: Pick<Dependencies, "inference" | "counters" | "clock">,
): Promise<Answer> {
  const { counters } = dependencies;
  const caller = context.caller as LlmKeyCaller;
  let choosesProvider = false;
  try {
    return await whileTokensCounted(
      context,
      { counters, estimateTokens: () => ocrTokens(pages) },
      (counted) => {
        const origin = originOf(context, { idPrefix: "ocr-", body: {}, caller, counted });
        choosesProvider = origin.forcedProviders !== undefined;
        // The request is counted by its settlement, as inference is.
        context.settled = true;
        return answerCall(context, ocrCall(origin, { model, pages }), dependencies);
      },
    );
  } catch (error) {
    throw error instanceof GatewayError ? inWordsOfOcr(error, choosesProvider) : error;
  }
}

/** Error codes of a model without a provider, where the caller did not choose the model. */
const unconfigured: ReadonlySet<string> = new Set(["model_unavailable", "no_upstream"]);

/**
 * Renames a provider's failures to the one code of this route (contract: `POST /ocr/extract`); the
 * caller's errors keep their codes.
 */
function inWordsOfOcr(error: GatewayError, choosesProvider: boolean): GatewayError {
  const { message, metadata, headers, retry, retryAfterSeconds, fault, code } = error;
  if (fault === "upstream") {
    return new GatewayError("ocr_upstream_failed", `The file could not be read. ${message}`, {
      fault,
      retry,
      metadata,
      headers,
      cause: error,
      ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
    });
  }
  if (choosesProvider || !unconfigured.has(code)) return error;
  return new GatewayError(
    "missing_workers_ai_binding",
    "This server is not set up to read such files. Tell its operator.",
    {
      detail: message,
      cause: error,
    },
  );
}
