import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Anthropic from "@anthropic-ai/sdk";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import type { Kysely } from "kysely";
import OpenAI, { toFile } from "openai";
import type { FileTables } from "../../../src/files/file-store.ts";
import {
  provider,
  startGateway,
  testLlmKey,
  testManagementKey,
  type TestGateway,
} from "../../support/gateway.ts";
import { pollUntil } from "../../support/poll-until.ts";
import type { FileVendor } from "../../support/strict-files/file-rules.ts";
import { StrictFiles } from "../../support/strict-files/strict-files.ts";
import { withTables } from "../../../src/platform/storage/with-tables.ts";

const vendorIds = ["openai", "anthropic", "google"] as const;
const vendors = new StrictFiles();

const entryOf = (id: FileVendor, models: readonly string[] = [`${id}/files-1`]) =>
  provider({
    id,
    base_url: vendors.baseUrl(id),
    api_key: "upstream-secret",
    models: models.map((model) => ({
      id: model,
      upstream_model: "files-1",
      context_length: 1_000_000,
      pricing: { prompt: "1", completion: "1" },
    })),
    data_policy: { data_collection: "deny" },
  });

const directory = mkdtempSync(join(tmpdir(), "switchyard-files-"));
let gateway: TestGateway;
let openai: OpenAI;
let database: Kysely<FileTables>;
beforeAll(async () => {
  gateway = await startGateway({
    providers: [
      entryOf("openai", ["openai/files-1", "shared/files-1"]),
      entryOf("anthropic"),
      entryOf("google", ["google/files-1", "shared/files-1"]),
    ],
    files: {
      place: { directory },
      quotaBytesOf: () => 1e9,
      uploadFromBytes: 2_000,
    },
  });
  openai = new OpenAI({ apiKey: testLlmKey, baseURL: gateway.baseUrl, maxRetries: 0 });
  database = withTables(gateway.app.storage.database);
});
afterAll(async () => {
  await gateway.stop();
  await vendors.stop();
  rmSync(directory, { recursive: true, force: true });
});
beforeEach(() => {
  vendors.asked.length = 0;
  vendors.refusals.length = 0;
});

let count = 0;
/** Stores a document of 3,000 bytes that is like no other one. */
const newDocument = async (name = "report.pdf", type = "application/pdf") => {
  count += 1;
  const content = Buffer.from(`%PDF-1.7 ${count} ${"x".repeat(3_000)}`);
  const file = await openai.files.create({
    file: await toFile(content, name, { type }),
    purpose: "user_data",
  });
  return { id: file.id, base64: content.toString("base64"), content };
};

const requestOf = (model: string, fileId: string) => ({
  model,
  max_tokens: 100,
  messages: [
    {
      role: "user" as const,
      content: [
        { type: "file" as const, file: { file_id: fileId } },
        { type: "text" as const, text: "read it" },
      ],
    },
  ],
});

const ask = (model: string, fileId: string, more: Record<string, unknown> = {}) =>
  openai.chat.completions.create({ ...requestOf(model, fileId), ...more });

/** Returns what each request so far has of a file: its content, or the name of what a vendor stores. */
const shownIn = ({ base64 }: { base64: string }): string[] =>
  vendors.asked.map(({ text }) =>
    text.includes(base64)
      ? "content"
      : (vendors.stored.find(({ id }) => text.includes(JSON.stringify(id)))?.filename ?? "nothing"),
  );

const deleteFile = (id: string) => openai.files.delete(id);

describe.each(vendorIds)("%s", (id) => {
  test("a file that is used again is uploaded once, and deleted with ours", async () => {
    const document = await newDocument();
    const uploads = vendors.uploads;
    for (let turn = 0; turn < 4; turn += 1) await ask(`${id}/files-1`, document.id);
    const [first, second, ...later] = shownIn(document);
    expect(first).toBe("content");
    expect(second).toMatch(/^report-[0-9a-f]{24}\.pdf$/);
    expect(new Set(later)).toEqual(new Set([String(second)]));
    expect([vendors.uploads - uploads, vendors.refusals]).toEqual([1, []]);
    const [stored] = vendors.stored.slice(-1);
    expect(stored).toMatchObject({
      vendor: id,
      type: "application/pdf",
      content: document.content,
    });
    await deleteFile(document.id);
    await pollUntil(() => !vendors.stored.some(({ filename }) => filename === second));
  });

  test("what the provider does not know any more is sent in the same request", async () => {
    const document = await newDocument();
    for (let turn = 0; turn < 2; turn += 1) await ask(`${id}/files-1`, document.id);
    vendors.stored.length = 0;
    vendors.asked.length = 0;
    const stream = await openai.chat.completions.create({
      ...requestOf(`${id}/files-1`, document.id),
      stream: true,
    });
    let text = "";
    for await (const { choices } of stream) text += choices[0]?.delta.content ?? "";
    expect(text).toBe("night");
    await ask(`${id}/files-1`, document.id);
    expect(shownIn(document)).toEqual(["content", expect.stringMatching(/^report-/)]);
    expect(vendors.refusals).toEqual([`${id}/known`]);
    await deleteFile(document.id);
  });
});

const rowsOf = (id: string) =>
  database
    .selectFrom("provider_files")
    .selectAll()
    .where("file_id", "=", id.replace("file-", "file_"))
    .execute();

test("Responses and Messages name files too, also pictures", async () => {
  const uploads = vendors.uploads;
  const picture = await newDocument("plan.png", "image/png");
  const messages = new Anthropic({ apiKey: testLlmKey, baseURL: gateway.origin, maxRetries: 0 });
  for (let turn = 0; turn < 2; turn += 1) {
    await openai.responses.create({
      model: "openai/files-1",
      store: false,
      input: [
        {
          role: "user",
          content: [{ type: "input_image", file_id: picture.id, detail: "auto" }],
        },
      ],
    });
    await messages.messages.create({
      model: "anthropic/files-1",
      max_tokens: 10,
      messages: [
        {
          role: "user",
          content: [
            { type: "image", source: { type: "file", file_id: picture.id.replace("-", "_") } },
          ],
        },
      ],
    } as Anthropic.MessageCreateParamsNonStreaming);
  }
  const names = shownIn(picture);
  expect(names.slice(0, 2)).toEqual(["content", "content"]);
  expect(new Set(names.slice(2)).size).toBe(2);
  expect([vendors.uploads - uploads, vendors.refusals]).toEqual([2, []]);
});

test("contents are sent where several providers may serve, and where nothing may be retained", async () => {
  const uploads = vendors.uploads;
  const document = await newDocument();
  for (let turn = 0; turn < 3; turn += 1) await ask("shared/files-1", document.id);
  for (let turn = 0; turn < 3; turn += 1)
    await ask("google/files-1", document.id, { provider: { data_collection: "deny" } });
  const small = await openai.files.create({
    file: await toFile(Buffer.from("%PDF small"), "s.pdf", { type: "application/pdf" }),
    purpose: "user_data",
  });
  for (let turn = 0; turn < 3; turn += 1) await ask("openai/files-1", small.id);
  expect(vendors.uploads).toBe(uploads);
});

test("a session is served by one provider, and its files are uploaded there", async () => {
  const document = await newDocument();
  const uploads = vendors.uploads;
  for (let turn = 0; turn < 4; turn += 1)
    await ask("shared/files-1", document.id, { session_id: "one conversation" });
  expect(vendors.uploads).toBe(uploads + 1);
});

test("an own provider key has copies of its own", async () => {
  const document = await newDocument();
  for (let turn = 0; turn < 2; turn += 1) await ask("openai/files-1", document.id);
  const made = await fetch(`${gateway.baseUrl}/auth/byok`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${testManagementKey}`,
      "content-type": "application/json",
    },
    body: JSON.stringify({ provider_id: "openai", api_key: "own-secret-of-the-workspace" }),
  });
  expect(made.ok).toBe(true);
  for (let turn = 0; turn < 2; turn += 1) await ask("openai/files-1", document.id);
  const copies = vendors.stored.filter(({ content }) => content.equals(document.content));
  expect(copies.map(({ credential }) => credential)).toEqual([
    "upstream-secret",
    "own-secret-of-the-workspace",
  ]);
  expect(vendors.refusals).toEqual([]);
  await deleteFile(document.id);
  await pollUntil(() => !vendors.stored.some(({ content }) => content.equals(document.content)));
});

test("a copy that no request uses for a day is deleted", async () => {
  const document = await newDocument();
  for (let turn = 0; turn < 2; turn += 1) await ask("anthropic/files-1", document.id);
  const [copy] = await rowsOf(document.id);
  expect(copy?.upstream_id).toMatch(/^file_up/);
  await database.updateTable("provider_files").set({ used_at_ms: 0 }).execute();
  await deleteFile((await newDocument()).id);
  await pollUntil(async () => (await rowsOf(document.id)).length === 0);
  expect(vendors.stored.some(({ id }) => id === copy?.upstream_id)).toBe(false);
});

// Last, since a provider that failed to store a file is left alone for ten minutes.
test.each(vendorIds)(
  "where %s fails to store a file, its content is sent and nothing is left",
  async (id) => {
    const document = await newDocument();
    vendors.failing = "after";
    await ask(`${id}/files-1`, document.id);
    await ask(`${id}/files-1`, document.id);
    expect(shownIn(document)).toEqual(["content", "content"]);
    const left = vendors.stored.length;
    // What a killed process leaves: a row without an answer, and a copy at the provider.
    await database
      .updateTable("provider_files")
      .set({ created_at_ms: 0 })
      .where("upstream_id", "is", null)
      .execute();
    await deleteFile((await newDocument()).id);
    await pollUntil(() => vendors.stored.length === left - 1);
    await pollUntil(async () => (await rowsOf(document.id)).length === 0);
  },
);
