import { expect, test } from "bun:test";
import { z } from "zod";
import { loadConfiguration } from "./load-configuration.ts";

test("a name that a model's id could be is refused by what names look like", async () => {
  const loading = loadConfiguration({
    environment: {},
    workingDirectory: "/srv",
    providerSchema: async () => z.unknown(),
    readFile: () => "aliases:\n  acme/fast: acme/small\n",
  });
  await expect(loading).rejects.toThrow(
    "switchyard.yaml:2 aliases.acme/fast: expected a name of letters, digits, dots and dashes as its key",
  );
});
