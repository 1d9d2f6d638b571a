import { expect, test } from "bun:test";
import { wantsMetadataInLastEvent } from "./gateway-facts.ts";

const helper = { "x-stainless-helper-method": "stream" };

test.each<[headers: Record<string, string>, inline: boolean]>([
  [{}, false],
  [helper, true],
  [{ "x-service-metadata-frame": "inline" }, true],
  [{ "x-service-metadata-frame": "event" }, false],
  [{ ...helper, "x-service-metadata-frame": "event" }, false],
  [{ ...helper, "x-service-metadata-frame": "inline" }, true],
])("with %j, metadata in the last event is %p", (dialectHeaders, inline) => {
  expect(wantsMetadataInLastEvent({ dialectHeaders })).toBe(inline);
});
