import { GatewayError } from "../../../platform/kernel/errors.ts";
import { usdFromNano } from "../../../platform/kernel/money.ts";
import { withoutUndefined } from "../../dialects/shared/wire-fields.ts";
import type { ShownAnswer, WholeAnswer } from "../../dialects/shared/exchange.ts";
import type { KeptText } from "../../../platform/kernel/json/text-keeper.ts";
import type { Fields } from "../read-fields.ts";
import { MediaRoom } from "../media/media-room.ts";
import { sumUsage } from "../whole-adapter.ts";
import {
  meteredPictures,
  withCallersUser,
  type MadePicture,
  type PictureMetering,
  type ReadPictures,
} from "./image-dialect.ts";
import type { ImageRequest } from "./image-request.ts";
import { keptData } from "./kept-picture-events.ts";
import { typeOfBase64 } from "./picture-file.ts";
import { openrouterUsage, shownUsage, withAuthored } from "./image-usage.ts";

/** The answer to a request for pictures, in its client's form. */
export class ImagesAnswer implements WholeAnswer {
  readonly upstreamId = null;
  readonly finishReason = null;
  readonly metered: WholeAnswer["metered"];
  readonly outputCharacters = 0;
  readonly hasContent: boolean;
  readonly spentOnReasoning = false;
  /** The pictures, whose form may be changed before they are rendered. */
  pictures: readonly MadePicture[];
  private readonly createdAtSeconds: number;
  private readonly parts: readonly ReadPictures[];

  constructor(
    readonly request: ImageRequest,
    {
      parts,
      metering,
      nowSeconds,
    }: {
      parts: readonly ReadPictures[];
      metering: PictureMetering;
      nowSeconds(): number;
    },
  ) {
    this.createdAtSeconds = parts[0]?.createdAtSeconds ?? nowSeconds();
    this.parts = parts;
    this.pictures = parts.flatMap(({ pictures }) => pictures);
    const metered = parts.map((part) => meteredPictures(part, metering));
    const sum = sumUsage(metered);
    const picture = metered[0]?.picture;
    this.metered = sum && (picture === undefined ? sum : { ...sum, picture });
    this.hasContent = this.pictures.length > 0;
    if (!this.hasContent) {
      const withheld = parts.find((part) => part.withheld !== undefined)?.withheld;
      if (withheld !== undefined) throw filtered(withheld);
    }
  }

  render(shown: ShownAnswer): string {
    return JSON.stringify(
      this.request.form === "openrouter"
        ? this.inOpenrouterForm(shown)
        : this.inOpenaiForm(shown, this.openaiData()),
    );
  }

  /**
   * Returns the answer as it is kept, in OpenAI's form. `pictures` are those before they were hosted
   * here, and at most `bytesMax` bytes of them are kept.
   */
  kept(
    shown: ShownAnswer,
    { pictures, bytesMax }: { pictures: readonly MadePicture[]; bytesMax: number },
  ): KeptText {
    const room = new MediaRoom(bytesMax);
    const text = JSON.stringify(this.inOpenaiForm(shown, keptData(pictures, room)));
    return { text, isCut: room.isCut };
  }

  private usage({
    metered,
    chargedNano,
    free,
  }: Pick<ShownAnswer, "metered" | "chargedNano" | "free">) {
    const { input = 0, output = 0 } = this.parts[0]?.authored ?? {};
    const usage = withAuthored(metered.usage, { input: -input, output: -output });
    return shownUsage(usage, free === true ? undefined : usdFromNano(chargedNano));
  }

  private openaiData(): readonly Fields[] {
    return this.pictures.map(({ base64, url, revisedPrompt }) =>
      withoutUndefined<Fields>({
        b64_json: base64,
        url: base64 === undefined ? url : undefined,
        revised_prompt: revisedPrompt,
      }),
    );
  }

  private inOpenaiForm(shown: ShownAnswer, data: readonly Fields[]): Fields {
    return {
      created: this.createdAtSeconds,
      data,
      ...withCallersUser(this.parts[0]?.shown ?? {}, this.request),
      usage: this.usage(shown),
    };
  }

  private inOpenrouterForm(shown: ShownAnswer): Fields {
    const { usage } = shown.metered;
    return {
      created: this.createdAtSeconds,
      data: this.pictures.map(({ base64, url, type }) =>
        withoutUndefined<Fields>({
          b64_json: base64,
          url: base64 === undefined ? url : undefined,
          media_type: type ?? (base64 === undefined ? "image/png" : typeOfBase64(base64)),
        }),
      ),
      usage: openrouterUsage(usage, shown.free === true ? 0 : usdFromNano(shown.chargedNano)),
    };
  }
}

/** Builds the error for pictures that a provider withheld. */
const filtered = (reason: string): GatewayError =>
  new GatewayError(
    "content_filter",
    `The provider made no picture: ${reason}. Change the prompt.`,
    {
      fault: "upstream",
      metadata: { upstream_message: `the provider made no picture: ${reason}` },
    },
  );
