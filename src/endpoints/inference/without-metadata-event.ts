import { brand } from "../../platform/lib/brand.ts";
import type { FrameSource } from "../../platform/lib/frame-source.ts";

const metadataFrame = `event: ${brand.metadataEvent}\n`;

/** The frames without the metadata event, for clients that break on it; the record tells the same. */
export const withoutMetadataEvent = (source: FrameSource): FrameSource => ({
  async next() {
    const frames = await source.next();
    if (frames === undefined || !frames.includes(metadataFrame)) return frames;
    return frames
      .split("\n\n")
      .filter((frame) => !frame.startsWith(metadataFrame))
      .join("\n\n");
  },
  cancel: () => source.cancel(),
});
