import { z } from "zod";
import { defineTool, idempotencyField } from "../../tool.ts";
import { askForPictures, pictureArguments, picturesSchema } from "./pictures.ts";

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
