import { describe } from "bun:test";
import { googleAdapters, hasGoogleAdapters } from "./adapters/google-adapters.ts";
import { googleGenaiSdk } from "./adapters/google-genai-adapter.ts";
import { describeClient } from "./support/client-suite.ts";
import { clientStage } from "./support/client-stage.ts";
import { googleGenaiVersions, hasGoogleGenai } from "./support/google-genai.ts";

const stage = clientStage();

for (const [folder, version] of googleGenaiVersions) {
  const missing = hasGoogleGenai(folder)
    ? ""
    : " (missing: what scripts/install-test-clients.mjs installs)";
  describe.skipIf(missing !== "")(`Google's client${missing}`, () =>
    describeClient(googleGenaiSdk(folder, version), stage),
  );
}

const others = hasGoogleAdapters() ? await googleAdapters() : [];
for (const client of others) describeClient(client, stage);
