import { z } from "zod";
import type { Conversion } from "../../documents/converter/converter-pool.ts";
import { converterModel } from "../../documents/converter/document-converter.ts";
import { defineEndpoint, type RequestContext } from "../../access/define-endpoint.ts";
import { lazily } from "../../http/endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import { tokensOfTexts } from "../../inference/surfaces/surface-call.ts";
import { brandHeader } from "../../platform/kernel/brand.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import type { Dependencies } from "../dependencies.ts";
import { readUpload, uploadBodyBytesMax } from "./read-upload.ts";
import type { Answer } from "../../http/request-context.ts";
import { type OcrPage, ocrCall, ocrTokens } from "../../inference/surfaces/ocr/ocr-call.ts";
import { answerCall } from "../inference/answer-call.ts";
import { callOrigin } from "../inference/read-call.ts";

const modelHeader = brandHeader("Model").toLowerCase();

const uploadSchema = z.object({
  image: z.string().describe("The file as base64 or as a data URL; at most 5 MiB decoded."),
  filename: z
    .string()
    .optional()
    .describe("A hint; what the file is, its bytes tell. Default image.png."),
});

const answerSchema = lazily(() =>
  z.object({
    text: z.string().describe("Markdown."),
    format: z.literal("markdown"),
    model: z
      .string()
      .describe(
        `What reads files here: ${converterModel}, or the model that the operator has configured.`,
      ),
    tokens: z.int().describe("The text's length in tokens, estimated at four characters each."),
  }),
);

/** The text of a picture or a PDF. */
export const ocrExtract = defineEndpoint<Dependencies>({
  method: "POST",
  path: "/ocr/extract",
  base: "api",
  access: { llmKey: true },
  counting: "at-door",
  bodyBytesMax: uploadBodyBytesMax,
  summary: "Read a picture or a PDF as Markdown.",
  description:
    "JSON, or a multipart/form-data body with the file in the field `image`. PNG, JPEG, GIF, WebP, BMP, TIFF and PDF, " +
    "told apart by their bytes. Headings, lists and tables where the layout shows them. Costs nothing, unless the operator has " +
    "configured a model that reads pages; then pages without text of their own cost what that model does.",
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
 * Has a file's pages read by the model that the operator names, charged as that model is priced.
 * Throws `GatewayError`.
 */
async function readByModel(
  context: RequestContext,
  { model, pages }: { model: string; pages: readonly OcrPage[] },
  dependencies: Dependencies,
): Promise<Answer> {
  const { counters } = dependencies;
  const origin = await callOrigin(context, {
    idPrefix: "ocr-",
    body: {},
    counters,
    estimateTokens: () => ocrTokens(pages),
  });
  // The request is counted by its settlement, as inference is.
  context.settled = true;
  try {
    return await answerCall(context, ocrCall(origin, { model, pages }), dependencies);
  } catch (error) {
    throw error instanceof GatewayError
      ? inWordsOfOcr(error, origin.forcedProviders !== undefined)
      : error;
  }
}

/** Error codes of a model without a provider, where the caller did not choose the model. */
const unconfigured: ReadonlySet<string> = new Set(["model_unavailable", "no_upstream"]);

/**
 * What a provider did has one name on this route (contract: `POST /ocr/extract`); what is the
 * caller's keeps its own.
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
