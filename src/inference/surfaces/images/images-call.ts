import { assert } from "../../../platform/kernel/assert.ts";
import { GatewayError } from "../../../platform/kernel/errors.ts";
import { routeDialect, type CatalogModel, type UpstreamDialect } from "../../catalog/model.ts";
import { withoutUndefined } from "../../dialects/shared/wire-fields.ts";
import type {
  Adapter,
  AdaptedRoute,
  CallOrigin,
  InferenceCall,
} from "../../pipeline/inference-call.ts";
import type { Fields } from "../read-fields.ts";
import { surfaceCall } from "../surface-call.ts";
import { googleImages } from "./google-images.ts";
import type { ImageDialect, ImageExchange, ReadPictures } from "./image-dialect.ts";
import type { ImageRequest } from "./image-request.ts";
import { eventsOfPictures, ImageRelay } from "./image-relay.ts";
import { heldPictures } from "./image-usage.ts";
import { openaiImages } from "./openai-images.ts";
import { ImagesAnswer } from "./images-answer.ts";
import { sentBody } from "../media/uploads.ts";

/** Builds the call of a request for pictures. */
export function imagesCall(
  origin: CallOrigin,
  { body, request, nowSeconds }: { body: Fields; request: ImageRequest; nowSeconds(): number },
): InferenceCall {
  const use = { usage: heldPictures(request), picture: kindOf(request) };
  const call = surfaceCall(origin, {
    surface: "images",
    // Pictures are in no record, and the prompt alone is no request that could be sent again.
    text: "",
    routing: body,
    requirements: { texts: 1, parameters: Object.keys(request.fields), inputTokens: 0 },
    adapt: (adapted) => adaptImages(request, { adapted, nowSeconds }),
    assertServes: assertMakesPictures,
  });
  return {
    ...call,
    requirements: { ...call.requirements, stream: request.stream, mediaAt: () => use },
  };
}

const kindOf = ({ size, quality }: ImageRequest) =>
  withoutUndefined<{ size?: string; quality?: string }>({ size, quality });

/** Throws `model_unavailable` for models that make no pictures. */
function assertMakesPictures({ id, surface }: CatalogModel): void {
  if (surface === "images") return;
  const message = `The model ${id} makes no pictures here; it serves ${surface}. GET /models?category=image lists those that do.`;
  throw new GatewayError("model_unavailable", message, { param: "model" });
}

const dialects: Partial<Record<UpstreamDialect, ImageDialect>> = {
  "openai-images": openaiImages,
  "google-images": googleImages,
};

/** The requests of one call that are in flight at once. */
const requestsAtOnce = 4;

/** A route that pictures are asked of, and the clock of answers that tell no time. */
interface Asked {
  adapted: AdaptedRoute;
  nowSeconds(): number;
  /** The members that the provider is sent, where they differ from those of the request. */
  sentFields?: Fields;
}

function adaptImages(request: ImageRequest, asked: Asked): Adapter {
  const { adapted, nowSeconds, sentFields: fields = request.fields } = asked;
  const dialect = dialects[routeDialect(adapted.route, "images") ?? "openai-images"];
  assert(dialect !== undefined, "a route of images has a dialect of images");
  const exchange = dialect.encode({ ...request, fields }, adapted);
  const { bodies, read } = exchange;
  const losses = [...(request.losses ?? []), ...exchange.losses];
  const byPiece = adapted.route.price?.base.outputImages !== undefined;
  const metering = { request, byPiece };
  const answerOf = (parts: readonly ReadPictures[]): ImagesAnswer =>
    new ImagesAnswer(request, { parts, metering, nowSeconds });
  const shared = {
    losses,
    ...scopable(request, asked),
    unusableCode: "upstream_invalid_response",
    answerDeviations: {
      eventsOfWhole: (text: string) => eventsOfText(text, { request, read, nowSeconds }),
    },
    createRelay: (options) => new ImageRelay(options, { ...metering, nowSeconds }),
  } satisfies Partial<Adapter>;
  const [first] = bodies;
  assert(first !== undefined, "an exchange has a body");
  if (bodies.length === 1)
    return {
      ...shared,
      ...sentBody(exchange, first),
      readWhole(_, body) {
        const part = read(body);
        return part && answerOf([part]);
      },
    };
  const parts: ReadPictures[] = [];
  const each = bodies.map(
    (body): Adapter => ({
      ...shared,
      ...sentBody(exchange, body),
      readWhole(_, answer) {
        const part = read(answer);
        if (part === undefined) return undefined;
        parts.push(part);
        return answerOf([part]);
      },
    }),
  );
  return {
    ...shared,
    requestText: "",
    readWhole: () => undefined,
    pieces: { each, parallel: requestsAtOnce, keepsSome: true, join: () => answerOf(parts) },
  };
}

/** Members that name a caller's end user. */
const userMembers = ["user", "safety_identifier"] as const;

/** Returns how a form is sent with another id of its end user; nothing where it names none. */
function scopable(request: ImageRequest, asked: Asked): Pick<Adapter, "withEndUser"> {
  const named = userMembers.filter((name) => typeof request.fields[name] === "string");
  if (named.length === 0 || request.operation === "generations") return {};
  return {
    withEndUser(scope) {
      const users = named.map((name) => [name, scope(String(request.fields[name]))]);
      const sentFields = { ...request.fields, ...Object.fromEntries(users) };
      const { withEndUser: _, ...adapter } = adaptImages(request, { ...asked, sentFields });
      return adapter;
    },
  };
}

/** Converts a whole answer to the stream that its client asked for. */
function eventsOfText(
  text: string,
  {
    request,
    read,
    nowSeconds,
  }: { request: ImageRequest; nowSeconds(): number } & Pick<ImageExchange, "read">,
): string {
  const body: unknown = JSON.parse(text);
  const answer = typeof body === "object" && body !== null ? read(body) : undefined;
  return answer === undefined || answer.pictures.length === 0
    ? `data: ${text.replaceAll("\n", " ")}\n\n`
    : eventsOfPictures(request, {
        ...answer,
        createdAtSeconds: answer.createdAtSeconds ?? nowSeconds(),
      });
}
