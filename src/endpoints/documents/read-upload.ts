import type { HttpRequest } from "../../http/http-request.ts";
import { readBodyBytes } from "../../http/read-body.ts";
import { GatewayError, type ErrorCode } from "../../platform/kernel/errors.ts";

const mib = 1024 * 1024;

/** Largest file (contract: "Limits"), in bytes. */
const fileBytesMax = 5 * mib;

/** Largest body: a file in base64, whose lines may be broken, with what stands around it. */
export const uploadBodyBytesMax = 7.25 * mib;

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

/** A refusal of the field that holds the file. */
const refusedImage = (code: ErrorCode, message: string): GatewayError =>
  new GatewayError(code, `image: ${message}`, { param: "image" });

const missingImage = (): GatewayError =>
  refusedImage(
    "missing_required_fields",
    "is required. Send a file as base64, as a data URL, or as a form's file.",
  );

/**
 * The file of an OCR request, which comes in JSON or as a form (RFC 7578). Throws `GatewayError`.
 */
export async function readUpload(request: HttpRequest): Promise<Uint8Array> {
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

/** What stands behind the comma of a data URL (RFC 2397), or the text itself. */
function base64Of(image: string): string {
  if (!/^data:/i.test(image)) return image;
  const comma = image.indexOf(",");
  if (comma < 0 || !/;base64$/i.test(image.slice(0, comma).trimEnd()))
    throw invalidEncoding("is a data URL without base64");
  return image.slice(comma + 1);
}

/**
 * Bytes of base64 in either alphabet (RFC 4648), with or without padding and line breaks; measured
 * before it is decoded.
 */
function bytesOfBase64(text: string): Uint8Array {
  const digits = text.replace(/[\s]+/g, "").replace(/={0,2}$/, "");
  if (digits === "" || digits.length % 4 === 1 || !/^[A-Za-z0-9+/_-]*$/.test(digits))
    throw invalidEncoding("is not base64");
  if (Math.floor((digits.length * 3) / 4) > fileBytesMax) throw tooLarge();
  return Buffer.from(digits, "base64");
}
