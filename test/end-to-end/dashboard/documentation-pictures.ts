import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect } from "bun:test";
import type { Page } from "playwright-core";
import sharp from "sharp";
import type { Person } from "./dashboard-scene.ts";

const folder = resolve(import.meta.dirname, "../../../docs/pictures");
/** With PICTURES=write the pictures of the documentation are written. */
export const isWriting = process.env["PICTURES"] === "write";

/** A picture: its name, the path that it shows, and who looks at it. */
type Picture = readonly [name: string, path: string, person: Person];

/** The pictures of screens as they are after their load, by paths of `screens`. */
const loadedPictures: readonly Picture[] = [
  ["overview", "", "owner"],
  ["activity", "/activity", "developer"],
  ["usage", "/usage", "owner"],
  ["models", "/models", "developer"],
  ["keys", "/keys", "developer"],
  ["hub", "/hub", "developer"],
  ["operator", "/operator", "operator"],
  ["credits", "/credits", "owner"],
  ["members", "/members", "owner"],
  ["model", "/models/acme/large", "developer"],
  ["connections", "/connections", "developer"],
  ["account", "/account", "member"],
  ["presets", "/presets", "developer"],
  ["provider-keys", "/provider-keys", "owner"],
  ["routing", "/routing", "developer"],
  ["budgets", "/budgets", "owner"],
  ["teams", "/teams", "owner"],
  ["aliases", "/aliases", "developer"],
  ["runs", "/runs", "developer"],
  ["batches", "/batches", "developer"],
  ["files", "/files", "developer"],
  ["mcp-servers", "/mcp-servers", "developer"],
  ["security", "/security", "owner"],
  ["reviews", "/hub?group=reviews", "operator"],
  ["collections", "/hub?group=hubs", "developer"],
  ["operator-workspaces", "/operator?group=workspaces", "operator"],
  ["operator-people", "/operator?group=people", "operator"],
  ["operator-providers", "/operator?group=providers", "operator"],
  ["operator-configuration", "/operator?group=configuration", "operator"],
  ["operator-incidents", "/operator?group=incidents", "operator"],
  ["operator-errors", "/operator?group=errors", "operator"],
  ["operator-settings", "/operator?group=settings", "operator"],
];

/** The pictures of other states and sections of screens. */
export const furtherPictures: readonly Picture[] = [
  ["playground", "/playground", "developer"],
  ["request", "/activity", "developer"],
  ["usage-customers", "/usage?group=customer", "owner"],
  ["usage-parts", "/usage?group=part", "owner"],
  ["team", "/teams", "owner"],
  ["run", "/runs", "developer"],
  ["batch", "/batches", "developer"],
  ["customers", "/customers", "owner"],
  ["customer", "/customers", "owner"],
  ["compare", "/models?id=acme/large,contoso/coder", "developer"],
  ["operator-workspace", "/operator?group=workspaces", "operator"],
  ["operator-plans", "/operator?group=plans", "operator"],
];

/** The pictures of pages that are public. */
export const publicPictures: readonly (readonly [name: string, path: string])[] = [
  ["sign-in", "/sign-in"],
  ["status", "/status"],
  ["catalog", "/catalog"],
];

/** Returns the name of the picture of a screen after its load; undefined where it has none. */
export const pictureOf = (path: string, person: Person): string | undefined =>
  loadedPictures.find((each) => each[1] === path && each[2] === person)?.[0];

/** The pictures of screens after their load whose screen is not among those that are loaded. */
export const missedPictures = (
  screens: readonly (readonly [path: string, person: Person])[],
): readonly Picture[] =>
  loadedPictures.filter(
    ([, path, person]) => !screens.some((each) => each[0] === path && each[1] === person),
  );

/** What a model answers in the playground's picture. */
export const picturedAnswer = `Three of the four reports ran:

| report | started | rows |
|---|---|---|
| Orders | 02:00 | 18,204 |
| Refunds | 02:10 | 311 |
| Stock | 02:20 | 4,870 |

**Invoices** did not start: its key had reached its cap. Raise the cap, or wait for the reset at midnight UTC.
`;

/** What is done on a screen before its picture is taken, by the picture's name. */
export const steps: Readonly<Record<string, (page: Page) => Promise<void>>> = {
  async request(page) {
    await page
      .getByRole("table")
      .last()
      .locator("tbody tr")
      .nth(3)
      .getByRole("button")
      .first()
      .click();
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
  async run(page) {
    await page.getByRole("link", { name: "Nightly research" }).click();
    await page.getByRole("heading", { level: 1, name: "Nightly research" }).waitFor();
  },
  async batch(page) {
    await page.getByRole("link", { name: "support-tickets.jsonl" }).click();
    await page.getByRole("button", { name: "Download answers" }).waitFor();
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

/** Expects that a page looks like its picture in the documentation; writes it where that is asked. */
export async function expectPicture(name: string, page: Page): Promise<void> {
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
}
