import { cutFiles } from "./cut-files.ts";
import type { HostileFile } from "./hostile-file.ts";
import { hostilePdfs } from "./hostile-pdf.ts";
import { hostilePictures } from "./hostile-pictures.ts";
import { hostilePngs } from "./hostile-png.ts";
import { hostileTiffs } from "./hostile-tiff.ts";
import { wrongTypes } from "./wrong-types.ts";

/**
 * Returns files of every kind that are cut, malformed, endless or of another type than they claim;
 * the same ones each time.
 */
export const hostileFiles = async (): Promise<HostileFile[]> => [
  ...(await cutFiles()),
  ...wrongTypes(),
  ...hostilePngs(),
  ...hostilePictures(),
  ...hostileTiffs(),
  ...hostilePdfs(),
];
