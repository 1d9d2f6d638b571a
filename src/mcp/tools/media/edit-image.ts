import { z } from "zod";
import { defineTool, idempotencyField } from "../../tool.ts";
import { askForPictures, pictureArguments, picturesSchema } from "./pictures.ts";

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
