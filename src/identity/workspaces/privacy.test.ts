import { expect, test } from "bun:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { noPrivacy, type Privacy } from "./privacy.ts";
import { PrivacyEditor } from "./privacy-editor.ts";
import { PrivacyDirectory } from "./privacy-directory.ts";

test("a change keeps what another gateway just changed in other settings", async () => {
  let stored: Privacy = noPrivacy;
  const store = {
    find: async () => stored,
    save: async (_: unknown, { privacy }: { privacy: Privacy }) => void (stored = privacy),
  };
  const owner = { workspaceId: "ws_1", ownerId: "ws_1" };
  const [here, there] = [0, 0].map(
    () => new PrivacyEditor({ store, directory: new PrivacyDirectory(), clock: new FakeClock() }),
  ) as [PrivacyEditor, PrivacyEditor];
  await here.change(owner, { zdr: true });
  await there.change(owner, { blockedProviders: ["acme"] });
  expect(stored).toEqual({ zdr: true, blockedProviders: ["acme"] });
});
