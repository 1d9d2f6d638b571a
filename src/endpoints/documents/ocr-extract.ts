import { z } from "zod";
import type { Conversion } from "../../documents/converter/converter-pool.ts";
import { converterModel } from "../../documents/converter/document-converter.ts";
import { defineEndpoint } from "../../access/define-endpoint.ts";
import { encodeContractError } from "../../http/error-envelope.ts";
import { tokensOfTexts } from "../../inference/surfaces/surface-call.ts";
import { brandHeader } from "../../platform/kernel/brand.ts";
import { GatewayError } from "../../platform/kernel/errors.ts";
import type { Dependencies } from "../dependencies.ts";
import { readByModel } from "./read-by-model.ts";
import { readUpload, uploadBodyBytesMax } from "./read-upload.ts";

const modelHeader = brandHeader("Model").toLowerCase();

const uploadSchema = z.object({
  image: z.string().describe("The file as base64 or as a data URL; at most 5 MiB decoded."),
  filename: z
    .string()
    .optional()
    .describe("A hint; what the file is, its bytes tell. Default image.png."),
});

const answerSchema = z.object({
  text: z.string().describe("Markdown."),
  format: z.literal("markdown"),
  model: z
    .string()
    .describe(
      `What reads files here: ${converterModel}, or the model that the operator has configured.`,
    ),
  tokens: z.int().describe("The text's length in tokens, estimated at four characters each."),
});

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
