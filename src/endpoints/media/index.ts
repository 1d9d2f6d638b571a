import type { Endpoint } from "../../access/define-endpoint.ts";
import type { Dependencies } from "../dependencies.ts";
import {
  imageContent,
  imageEdits,
  imageGenerations,
  imageVariations,
  openrouterImages,
} from "./images.ts";
import { listImageModelEndpoints, listImageModels } from "./image-models.ts";
import { audioSpeech } from "./speech.ts";
import { audioTranscriptions, audioTranslations } from "./transcriptions.ts";

/** Pictures and sound; a part of the table in `endpoints/index.ts`. */
export const mediaEndpoints: readonly Endpoint<Dependencies>[] = [
  imageGenerations,
  imageEdits,
  imageVariations,
  openrouterImages,
  listImageModels,
  listImageModelEndpoints,
  imageContent,
  audioTranscriptions,
  audioTranslations,
  audioSpeech,
];
