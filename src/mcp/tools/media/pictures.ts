import { z } from "zod";
import { pictureTypeOf } from "../../../platform/kernel/picture-type.ts";
import { MediaResult } from "../../media-result.ts";
import { type ToolContext, defineTool, idempotencyField } from "../../tool.ts";
import { answeredCall, answeredFields, askModel } from "./answered-call.ts";
import type { InnerAnswer } from "../../../http/request-context.ts";

/** The most pictures of one call: each of them is a block of the conversation. */
const picturesMax = 4;

/** The arguments that making and changing pictures have in common. */
const pictureArguments = {
  model: z
    .string()
    .min(1)
    .max(256)
    .describe("Id of a model that makes pictures, from list_models."),
  prompt: z.string().min(1).max(32_000).describe("What is to be seen."),
  n: z
    .int("must be a whole number")
    .min(1, "must be at least 1")
    .max(picturesMax, `must be at most ${picturesMax}`)
    .optional()
    .describe(`Number of pictures, 1 to ${picturesMax}. Default: 1.`),
  size: z
    .string()
    .max(100)
    .optional()
    .describe("auto, pixels such as 1024x1024, or a tier such as 2K."),
  quality: z.string().max(100).optional().describe("Such as low, medium or high."),
  background: z
    .enum(["auto", "opaque", "transparent"], "must be auto, opaque or transparent")
    .optional(),
  output_format: z.enum(["png", "jpeg", "webp"], "must be png, jpeg or webp").optional(),
  link: z
    .boolean()
    .default(false)
    .describe("Whether to answer with addresses that work for an hour, in place of the pictures."),
};

/** The result of making pictures. */
const picturesSchema = z.looseObject({
  pictures: z.array(
    z.looseObject({
      media_type: z.string(),
      bytes: z.int().optional().describe("Size of the picture; absent for an address."),
      url: z.string().optional().describe("Address of the picture, which works for an hour."),
      revised_prompt: z.string().optional().describe("The prompt as the provider changed it."),
    }),
  ),
  ...answeredFields,
});

const answerSchema = z.looseObject({
  data: z.array(
    z.looseObject({
      b64_json: z.string().optional(),
      url: z.string().optional(),
      revised_prompt: z.string().optional(),
    }),
  ),
  output_format: z.string().optional(),
  usage: z.unknown().optional(),
});

type Made = z.infer<typeof answerSchema>["data"][number];

/** What is asked of a model: the fields of its endpoint, and those of the tool alone. */
interface AskedPictures {
  link: boolean;
  idempotency_key?: string | undefined;
}

/**
 * Asks a model for pictures, and returns them as blocks in their order. Throws the `GatewayError`
 * that refuses the call.
 */
async function askForPictures(
  context: Pick<ToolContext, "request">,
  endpoint: `POST /images/${string}`,
  { link, idempotency_key: idempotencyKey, ...fields }: AskedPictures,
): Promise<MediaResult> {
  const body = { ...fields, response_format: link ? "url" : "b64_json" };
  return picturesOf(await askModel(context, { endpoint, body, idempotencyKey }));
}

function picturesOf(answer: InnerAnswer): MediaResult {
  const { data, output_format: format = "png", usage } = answerSchema.parse(answer.body);
  const shown = data.map(({ b64_json: base64, url, revised_prompt: revised }) => ({
    media_type: base64 === undefined ? `image/${format}` : (pictureTypeOf(base64) ?? "image/png"),
    ...(base64 === undefined ? { url } : { bytes: Buffer.byteLength(base64, "base64") }),
    ...(revised !== undefined && { revised_prompt: revised }),
  }));
  const blockOf = ({ b64_json: base64, url = "" }: Made, index: number) => {
    const mimeType = shown[index]?.media_type ?? "image/png";
    return base64 === undefined
      ? { type: "resource_link" as const, uri: url, name: `picture ${index + 1}`, mimeType }
      : { type: "image" as const, data: base64, mimeType };
  };
  return new MediaResult({ pictures: shown, ...answeredCall(answer, usage) }, data.map(blockOf));
}

export const generateImage = defineTool({
  name: "generate_image",
  title: "Make pictures",
  description:
    "Makes pictures of a prompt, which are shown as images, or as addresses with link. list_models with category image lists the " +
    "models and their prices. The charge is held before a provider is asked, and is in cost.",
  scope: "inference",
  effect: "adds",
  endpoint: "POST /images/generations",
  output: picturesSchema,
  input: z.object({ ...pictureArguments, ...idempotencyField }),
  run: (given, context) => askForPictures(context, "POST /images/generations", given),
});

const picture = z.string().min(1);

export const editImage = defineTool({
  name: "edit_image",
  title: "Change pictures",
  description:
    "Changes pictures as a prompt says, or makes a new one of several. Pictures are named by data URL, https URL or the id of a file " +
    "of the workspace; a call may have 4 MB in all, so larger pictures need a file or an address.",
  scope: "inference",
  effect: "adds",
  endpoint: "POST /images/edits",
  output: picturesSchema,
  input: z.object({
    ...pictureArguments,
    images: z
      .array(picture)
      .min(1, "must have a picture")
      .max(16, "must have at most 16 pictures")
      .describe("Pictures by data URL, https URL or file id."),
    mask: picture
      .optional()
      .describe("PNG with transparent pixels where the first picture is to change, named alike."),
    ...idempotencyField,
  }),
  run: (given, context) => askForPictures(context, "POST /images/edits", given),
});
