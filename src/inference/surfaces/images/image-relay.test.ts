import { expect, test } from "bun:test";
import { ImageRelay } from "./image-relay.ts";
import { readImageRequest } from "./image-request.ts";

/** Returns a relay of a stream of pictures at a price by piece. */
function relayOf(n: number): ImageRelay {
  const body = { model: "acme/draw", prompt: "a cat", n, stream: true, partial_images: 2 };
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
  const relay = relayOf(1);
  accept(relay, "image_generation.partial_image", { b64_json: "AAAA", partial_image_index: 0 });
  expect(picturesOf(relay)).toBe(0);
  relay.leave();
  expect(picturesOf(relay)).toBe(1);
  const failed = { error: { message: "blocked", code: "moderation_blocked" } };
  expect(() => accept(relay, "error", failed)).toThrow();
  expect(picturesOf(relay)).toBe(0);
});

test("a draft beside a finished picture is one more once its client has left", () => {
  const relay = relayOf(2);
  accept(relay, "image_generation.completed", { b64_json: "AAAA" });
  relay.leave();
  expect(picturesOf(relay)).toBe(1);
  accept(relay, "image_generation.partial_image", { b64_json: "AAAA", partial_image_index: 0 });
  expect(picturesOf(relay)).toBe(2);
});
