import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import sharp from "sharp";
import { hasChromium, missingChromium, turnDark } from "../../support/chromium.ts";
import {
  startDashboardScene,
  type DashboardScene,
  type Look,
  type Person,
} from "./dashboard-scene.ts";
import { chatStream } from "../../support/upstream/healthy-chat.ts";
import { settled } from "./screen.ts";

const folder = resolve(import.meta.dirname, "../../../docs/pictures");
/** With PICTURES=write the pictures of the documentation are written. */
const isWriting = process.env["PICTURES"] === "write";

const screens: readonly (readonly [name: string, path: string, person: Person])[] = [
  ["overview", "", "owner"],
  ["playground", "/playground", "developer"],
  ["activity", "/activity", "developer"],
  ["request", "/activity", "developer"],
  ["usage", "/usage", "owner"],
  ["usage-customers", "/usage?group=customer", "owner"],
  ["usage-parts", "/usage?group=part", "owner"],
  ["models", "/models", "developer"],
  ["keys", "/keys", "developer"],
  ["hub", "/hub", "developer"],
  ["operator", "/operator", "operator"],
  ["credits", "/credits", "owner"],
  ["members", "/members", "owner"],
  ["model", "/models/acme/large", "developer"],
  ["compare", "/models?id=acme/large,contoso/coder", "developer"],
  ["connections", "/connections", "developer"],
  ["account", "/account", "member"],
  ["presets", "/presets", "developer"],
  ["provider-keys", "/provider-keys", "owner"],
  ["routing", "/routing", "developer"],
  ["budgets", "/budgets", "owner"],
  ["teams", "/teams", "owner"],
  ["team", "/teams", "owner"],
  ["aliases", "/aliases", "developer"],
  ["customers", "/customers", "owner"],
  ["customer", "/customers", "owner"],
  ["runs", "/runs", "developer"],
  ["security", "/security", "owner"],
  ["reviews", "/hub?group=reviews", "operator"],
  ["collections", "/hub?group=hubs", "developer"],
  ["operator-workspaces", "/operator?group=workspaces", "operator"],
  ["operator-workspace", "/operator?group=workspaces", "operator"],
  ["operator-people", "/operator?group=people", "operator"],
  ["operator-plans", "/operator?group=plans", "operator"],
  ["operator-providers", "/operator?group=providers", "operator"],
  ["operator-configuration", "/operator?group=configuration", "operator"],
  ["operator-errors", "/operator?group=errors", "operator"],
  ["operator-settings", "/operator?group=settings", "operator"],
];

/** What a model answers in the playground's picture. */
const answer = `Three of the four reports ran:

| report | started | rows |
|---|---|---|
| Orders | 02:00 | 18,204 |
| Refunds | 02:10 | 311 |
| Stock | 02:20 | 4,870 |

**Invoices** did not start: its key had reached its cap. Raise the cap, or wait for the reset at midnight UTC.
`;

/** What is done on a screen before its picture is taken. */
const steps: Readonly<Record<string, (page: Page) => Promise<void>>> = {
  async request(page) {
    await page.getByRole("table").last().locator("tbody tr").nth(3).getByRole("button").click();
    await page.getByRole("heading", { name: "Why it cost this" }).waitFor();
  },
  async "operator-workspace"(page) {
    await page.getByRole("link", { name: "Acme & Sons" }).click();
    await page.getByRole("group", { name: "Usage by model" }).waitFor();
  },
  async team(page) {
    await page.getByRole("link", { name: "Research" }).click();
    await page.getByRole("heading", { level: 1, name: "Research" }).waitFor();
  },
  async customer(page) {
    await page.getByRole("link", { name: "Harbour Books" }).click();
    await page.getByRole("heading", { level: 1, name: "Harbour Books" }).waitFor();
  },
  async playground(page) {
    await page.getByLabel("Message", { exact: true }).fill("Which of our reports ran last night?");
    await page.keyboard.press("Enter");
    await page.getByRole("link", { name: "Open the record" }).first().waitFor();
  },
};

/** Pages that are public. */
const publicPages = [
  ["sign-in", "/sign-in"],
  ["status", "/status"],
  ["catalog", "/catalog"],
] as const;

/**
 * Brightness of a picture in fields so large that letters and figures in them do not matter, and
 * the layout does.
 */
const fieldsOf = async (picture: Uint8Array): Promise<Uint8Array> =>
  new Uint8Array(await sharp(picture).greyscale().resize(32, 20, { fit: "fill" }).raw().toBuffer());

/** The mean difference of two pictures' fields, from 0 to 1. */
async function difference(one: Uint8Array, other: Uint8Array): Promise<number> {
  const [left, right] = await Promise.all([fieldsOf(one), fieldsOf(other)]);
  return (
    left.reduce((sum, field, index) => sum + Math.abs(field - (right[index] ?? 0)), 0) /
    left.length /
    255
  );
}

const differenceMax = 0.04;
const bytesMax = 100_000;

describe.skipIf(!hasChromium)(`the screenshots of the documentation${missingChromium}`, () => {
  let scene: DashboardScene;
  beforeAll(async () => {
    scene = await startDashboardScene(undefined, { livelyRows: 12_000 });
    scene.serving.script(chatStream({ text: [answer] }));
  }, 240_000);
  afterAll(() => scene.stop());

  const every: typeof screens = [
    ...screens,
    ...publicPages.map(([name, path]) => [name, `public:${path}`, "member"] as const),
  ];
  const expectPicture = async (name: string, page: Page): Promise<void> => {
    const file = join(folder, `${name}.webp`);
    const taken = await page.screenshot(isWriting ? {} : { type: "jpeg", quality: 90 });
    if (isWriting) {
      mkdirSync(folder, { recursive: true });
      writeFileSync(file, await sharp(taken).webp({ quality: 70 }).toBuffer());
    }
    expect(existsSync(file)).toBe(true);
    const kept = readFileSync(file);
    expect(kept.byteLength).toBeLessThan(bytesMax);
    expect(await difference(kept, taken)).toBeLessThan(differenceMax);
  };
  const open = (path: string, person: Person, look: Look) =>
    path.startsWith("public:")
      ? scene.openSignedOut(path.slice("public:".length), look)
      : scene.open(person, path, look);

  test.each(every)(
    "%s, light and turned dark, matches its screenshots",
    async (name, path, person) => {
      const screen = await open(path, person, "light");
      await steps[name]?.(screen.page);
      await settled(screen.page);
      await expectPicture(`${name}-light`, screen.page);
      await turnDark(screen.page);
      await expectPicture(`${name}-dark`, screen.page);
      await screen.close();
    },
  );

  test.each(every.filter(([name]) => name === "usage" || name === "sign-in"))(
    "%s, loaded dark, matches its screenshot",
    async (name, path, person) => {
      const screen = await open(path, person, "dark");
      await expectPicture(`${name}-dark`, screen.page);
      await screen.close();
    },
  );
});
