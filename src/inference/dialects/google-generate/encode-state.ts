import type { CacheMarker } from "../../canonical/cache-marker.ts";
import type { Extensions } from "../../canonical/extensions.ts";
import type { CanonicalRequest } from "../../canonical/request.ts";
import type { EncodeRequestOptions } from "../dialect.ts";
import { EncodePlace, EncodeState } from "../encode-state.ts";
import { legalName, type NamedTool } from "../tool-aliases.ts";
import { geminiTraits, type GeminiTraits } from "./gemini-traits.ts";

/** Gemini's bound on function names. */
const toolNameLengthMax = 64;

/** What a message, a part or a tool has beside its content. */
interface Decoration {
  cache?: CacheMarker | undefined;
  extensions?: Extensions | undefined;
  name?: string;
}

/** What the steps of encoding one request for Gemini share. */
export class GeminiState extends EncodeState {
  readonly traits: GeminiTraits;

  constructor(request: CanonicalRequest, options: EncodeRequestOptions) {
    super(request, options, { id: "google-generate", toolNameLengthMax, wrapsCustom: true });
    this.traits = geminiTraits(options.upstreamModel);
  }

  /** Declares a field as lost where it has a value. */
  loseIfSet(field: string, value: unknown): void {
    if (value !== undefined) this.lose(field, "Gemini has no such field");
  }

  /** A name that Gemini accepts: unlike elsewhere, it must begin with a letter or an underscore. */
  wireName(tool: NamedTool): string {
    const wire = this.namer.wireName(tool);
    if (/^[a-zA-Z_]/.test(wire)) return wire;
    const prefixed = legalName(`_${wire}`, toolNameLengthMax);
    const { aliases } = this.namer;
    aliases.set(prefixed, aliases.get(wire) ?? { name: tool.name });
    return prefixed;
  }

  override at(path: string): GeminiPlace {
    return new GeminiPlace(this, path);
  }
}

/** A spot of the canonical request that is being encoded, for what is said about it. */
export class GeminiPlace extends EncodePlace {
  declare readonly state: GeminiState;

  override at(suffix: string): GeminiPlace {
    return new GeminiPlace(this.state, this.path + suffix);
  }

  /** Declares what stands here beside the content: Gemini caches by itself and knows neither names nor other fields. */
  loseDecoration({ cache, extensions, name }: Decoration): void {
    if (cache !== undefined) this.state.lose("cache_control", "Gemini caches by itself");
    if (name !== undefined) this.at(".name").lose("Gemini has no such field");
    this.extensionFields(extensions);
  }
}
