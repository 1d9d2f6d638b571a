import { expect, test } from "bun:test";
import { ImageRelay } from "./image-relay.ts";
import { readImageRequest } from "./image-request.ts";

/** Returns a relay of a stream of one picture at a price by piece. */
function relayOfOne(): ImageRelay {
  const body = { model: "acme/draw", prompt: "a cat", stream: true, partial_images: 2 };
  return new ImageRelay(
    {
      shown: { id: "img-1", model: "acme/draw" },
      inputTokens: 0,
      windowTokens: 0,
      fallback: undefined,
      settle: async () => ({ chargedNano: 0n }),
      metadataText: () => "",
    },
    {
      request: readImageRequest(body, { operation: "generations" }),
      byPiece: true,
      nowSeconds: () => 0,
    },
  );
}

const accept = (relay: ImageRelay, type: string, more: object): unknown =>
  relay.accept({ event: type, data: JSON.stringify({ type, ...more }) });
const picturesOf = (relay: ImageRelay): unknown => relay.metered().usage.outputImages;

test("a draft is a picture once its client has left, unless its provider then fails", () => {
  const relay = relayOfOne();
  accept(relay, "image_generation.partial_image", { b64_json: "AAAA", partial_image_index: 0 });
  expect(picturesOf(relay)).toBe(0);
  relay.leave();
  expect(picturesOf(relay)).toBe(1);
  const failed = { error: { message: "blocked", code: "moderation_blocked" } };
  expect(() => accept(relay, "error", failed)).toThrow();
  expect(picturesOf(relay)).toBe(0);
});
