import Anthropic, { toFile as toAnthropicFile } from "@anthropic-ai/sdk";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import OpenAI, { toFile } from "openai";
import {
  startGateway,
  testLlmKey,
  testManagementKey,
  type TestGateway,
} from "../../support/gateway.ts";
import { withTables } from "../../../src/platform/storage/with-tables.ts";

const quotaBytes = 2_000_000;

let gateway: TestGateway;
let openai: OpenAI;
let anthropic: Anthropic;
const directory = mkdtempSync(join(tmpdir(), "switchyard-files-"));

beforeAll(async () => {
  gateway = await startGateway({
    files: { place: { directory }, quotaBytesOf: () => quotaBytes },
  });
  openai = new OpenAI({ apiKey: testLlmKey, baseURL: gateway.baseUrl, maxRetries: 0 });
  anthropic = new Anthropic({ apiKey: testLlmKey, baseURL: gateway.origin, maxRetries: 0 });
});
afterAll(async () => {
  await gateway.stop();
  rmSync(directory, { recursive: true, force: true });
});

const upload = (content: string | Buffer, name = "a.jsonl") =>
  toFile(Buffer.from(content), name).then((file) =>
    openai.files.create({ file, purpose: "user_data" }),
  );

/** Returns the error of a call that has to fail; SDKs make the request when it is awaited. */
const errorOf = async (call: PromiseLike<unknown>): Promise<unknown> => {
  try {
    return await call;
  } catch (error) {
    return error;
  }
};

const storedNames = (): string[] =>
  readdirSync(directory).flatMap((shelf) => readdirSync(join(directory, shelf)));

describe("OpenAI's client", () => {
  test("stores, lists, downloads and deletes a file", async () => {
    const file = await openai.files.create({
      file: await toFile(Buffer.from("line\n"), "../../etc/in put.jsonl", { type: "text/plain" }),
      purpose: "batch",
      expires_after: { anchor: "created_at", seconds: 3_600 },
    });
    expect(file.id).toMatch(/^file-[0-9a-f]{32}$/);
    expect(file).toMatchObject({
      object: "file",
      bytes: 5,
      filename: "in put.jsonl",
      purpose: "batch",
      status: "processed",
    });
    expect((file.expires_at ?? 0) - file.created_at).toBe(3_600);
    expect(await openai.files.retrieve(file.id)).toEqual(file);
    expect((await openai.files.waitForProcessing(file.id)).status).toBe("processed");
    const content = await openai.files.content(file.id);
    expect(await content.text()).toBe("line\n");
    expect(content.headers.get("content-type")).toStartWith("text/plain");
    expect(content.headers.get("x-content-type-options")).toBe("nosniff");
    expect(content.headers.get("content-disposition")).toStartWith("attachment;");
    expect(await openai.files.delete(file.id)).toEqual({
      id: file.id,
      object: "file",
      deleted: true,
    });
    expect(await errorOf(openai.files.retrieve(file.id))).toMatchObject({ status: 404 });
    expect(await errorOf(openai.files.content(file.id))).toMatchObject({ status: 404 });
  });

  test("pages through a list that ends", async () => {
    const made = [await upload("1"), await upload("2"), await upload("3")];
    const seen: string[] = [];
    for await (const { id } of openai.files.list({ limit: 2, purpose: "user_data" })) seen.push(id);
    expect(seen).toEqual(made.map(({ id }) => id).reverse());
    const rising: string[] = [];
    for await (const { id } of openai.files.list({ limit: 1, order: "asc" })) rising.push(id);
    expect(rising).toEqual(made.map(({ id }) => id));
    expect((await openai.files.list({ purpose: "batch" })).data).toEqual([]);
    for (const { id } of made) await openai.files.delete(id);
  });

  test.each([
    ["../../etc/passwd", "passwd"],
    ["a\u202egpj.exe", "agpj.exe"],
    ["x\ud800y", "x\ufffdy"],
    [`${"a".repeat(254)}\u{1f600}`, "a".repeat(254)],
    ["..", "file"],
  ])("a file named %j is named %j", async (filename, name) => {
    const upload = await openai.uploads.create({
      bytes: 1,
      filename,
      mime_type: "text/plain",
      purpose: "user_data",
    });
    expect(upload.filename).toBe(name);
    await openai.uploads.cancel(upload.id);
  });

  test("of several completions of an upload at once, one makes the file", async () => {
    const data = Buffer.alloc(450_000, "x");
    const { id: uploadId } = await openai.uploads.create({
      bytes: 2 * data.byteLength,
      filename: "at-once.bin",
      mime_type: "application/octet-stream",
      purpose: "user_data",
    });
    const part = async () =>
      (await openai.uploads.parts.create(uploadId, { data: await toFile(data, "part") })).id;
    const partIds = [await part(), await part()];
    const ends = await Promise.allSettled([
      ...Array.from({ length: 6 }, () => openai.uploads.complete(uploadId, { part_ids: partIds })),
      openai.uploads.cancel(uploadId),
    ]);
    const statuses = ends.map((end) =>
      end.status === "fulfilled" ? 200 : (end.reason as { status: number }).status,
    );
    expect(statuses.toSorted((one, other) => one - other)).toEqual([200, ...Array(6).fill(400)]);
    const made = (await openai.files.list({ purpose: "user_data" })).data;
    for (const { id } of made.filter(({ filename }) => filename === "at-once.bin"))
      await openai.files.delete(id);
  });

  test("uploads in parts, in the order of completion", async () => {
    const begun = await openai.uploads.create({
      bytes: 6,
      filename: "parts.txt",
      mime_type: "text/plain",
      purpose: "user_data",
    });
    expect(begun).toMatchObject({ object: "upload", status: "pending" });
    const part = async (text: string) =>
      openai.uploads.parts.create(begun.id, { data: await toFile(Buffer.from(text), "part") });
    const [second, first] = [await part("def"), await part("abc")];
    expect(
      await errorOf(openai.uploads.complete(begun.id, { part_ids: [first.id] })),
    ).toMatchObject({
      status: 400,
    });
    expect(
      await errorOf(
        openai.uploads.complete(begun.id, { part_ids: [first.id, second.id], md5: "0".repeat(32) }),
      ),
    ).toMatchObject({ status: 400 });
    const done = await openai.uploads.complete(begun.id, {
      part_ids: [first.id, second.id],
      md5: "e80b5017098950fc58aad83c8c14978e",
    });
    expect(done.status).toBe("completed");
    const id = done.file?.id ?? "";
    expect(await (await openai.files.content(id)).text()).toBe("abcdef");
    expect(await errorOf(openai.uploads.cancel(begun.id))).toMatchObject({ status: 400 });
    await openai.files.delete(id);
    const given = await openai.uploads.create({
      bytes: 3,
      filename: "x",
      mime_type: "",
      purpose: "user_data",
    });
    await openai.uploads.parts.create(given.id, { data: await toFile(Buffer.from("abc"), "p") });
    expect((await openai.uploads.cancel(given.id)).status).toBe("cancelled");
    expect(storedNames()).toEqual([]);
    expect(
      await withTables<{ file_usage: { bytes: number } }>(gateway.app.storage.database)
        .selectFrom("file_usage")
        .select("bytes")
        .execute(),
    ).toEqual([{ bytes: 0 }]);
  });
});

test("a repeated upload makes one file", async () => {
  const body = { bytes: 3, filename: "once.txt", mime_type: "text/plain" };
  const keyed = (idempotencyKey: string) => ({ headers: { "idempotency-key": idempotencyKey } });
  const begin = () =>
    openai.uploads.create({ ...body, purpose: "user_data" }, keyed("begin an upload"));
  const [begun, again] = [await begin(), await begin()];
  expect(again.id).toBe(begun.id);
  const data = await toFile(Buffer.from("abc"), "part");
  const { id } = await openai.uploads.parts.create(begun.id, { data });
  const complete = () =>
    openai.uploads.complete(begun.id, { part_ids: [id] }, keyed("complete it"));
  const [done, repeated] = [await complete(), await complete()];
  expect(done.status).toBe("completed");
  expect(repeated).toEqual(done);
  await openai.files.delete(done.file?.id ?? "");
});

describe("Anthropic's client", () => {
  test.each(["GA", "beta"])("%s: stores, lists and deletes a file", async (kind) => {
    const files = kind === "GA" ? anthropic.files : anthropic.beta.files;
    const made = await files.upload({
      file: await toAnthropicFile(Buffer.from("%PDF-1.7"), "a.pdf", { type: "application/pdf" }),
    });
    expect(made.id).toMatch(/^file_[0-9a-f]{32}$/);
    expect(made).toMatchObject({
      type: "file",
      filename: "a.pdf",
      mime_type: "application/pdf",
      size_bytes: 8,
      downloadable: false,
    });
    const other = await files.upload({ file: await toAnthropicFile(Buffer.from("2"), "b.txt") });
    const seen: string[] = [];
    for await (const { id } of files.list({ limit: 1 })) seen.push(id);
    expect(seen).toEqual([other.id, made.id]);
    expect(await errorOf(files.download(made.id))).toMatchObject({
      status: 400,
      error: { error: { details: { error_code: "file_not_downloadable" } } },
    });
    for (const id of seen) expect(await files.delete(id)).toEqual({ id, type: "file_deleted" });
    expect(await errorOf(files.delete(made.id))).toMatchObject({
      status: 404,
      error: { type: "error", error: { type: "not_found_error" } },
    });
  });
});

describe("the content of a file", () => {
  const bytes = Buffer.from(Array.from({ length: 200_000 }, (_, index) => (index * 7) % 256));
  let id: string;
  beforeAll(async () => {
    ({ id } = await upload(bytes, "r.bin"));
  });
  afterAll(() => openai.files.delete(id));

  test.each([
    ["bytes=0-0", 206, 0, 1],
    ["bytes=65535-65537", 206, 65_535, 65_538],
    ["bytes=199990-", 206, 199_990, 200_000],
    ["bytes=-5", 206, 199_995, 200_000],
    ["bytes=0-999999", 206, 0, 200_000],
    ["bytes=5-1", 200, 0, 200_000],
    ["bytes=0-1,5-6", 200, 0, 200_000],
  ])("%s", async (range, status, from, to) => {
    const answer = await gateway.get(`/files/${id}/content`, { range });
    expect(answer.status).toBe(status);
    expect(Buffer.from(await answer.arrayBuffer()).equals(bytes.subarray(from, to))).toBe(true);
    if (status === 206)
      expect(answer.headers.get("content-range")).toBe(`bytes ${from}-${to - 1}/200000`);
  });

  test("a range of another content is answered with the whole of this one", async () => {
    const path = `/files/${id}/content`;
    const statusFor = async (etag: string) =>
      (await gateway.get(path, { range: "bytes=0-9", "if-range": etag })).status;
    const etag = (await gateway.get(path)).headers.get("etag") ?? "";
    expect([await statusFor(etag), await statusFor('"other"')]).toEqual([206, 200]);
  });

  test.each([
    ["", ""],
    [", also of a range", "bytes=0-9"],
    [", also behind the end", "bytes=200000-"],
  ])("HEAD names the length, and sends nothing%s", async (_, range) => {
    const answer = await fetch(`${gateway.baseUrl}/files/${id}/content`, {
      method: "HEAD",
      headers: { authorization: `Bearer ${testLlmKey}`, ...(range !== "" && { range }) },
    });
    expect(answer.headers.get("content-range")).toBeNull();
    expect([answer.status, answer.headers.get("content-length")]).toEqual([200, "200000"]);
    expect(await answer.text()).toBe("");
  });

  test("a range behind the end is refused", async () => {
    const answer = await gateway.get(`/files/${id}/content`, { range: "bytes=200000-" });
    expect([answer.status, answer.headers.get("content-range")]).toEqual([416, "bytes */200000"]);
  });

  test("is encrypted on the disk", () => {
    const [name = ""] = storedNames();
    const stored = readFileSync(join(directory, name.slice(-2), name));
    expect(stored.byteLength).toBe(200_000 + 4 * 16);
    expect(stored.includes(bytes.subarray(0, 64))).toBe(false);
  });

  test.each([
    ["<script>alert(1)</script>", "x.html", "text/html"],
    ["<svg onload='alert(1)'/>", "x.svg", "image/svg+xml"],
  ])("%s is never shown by a browser", async (content, name, type) => {
    const made = await openai.files.create({
      file: await toFile(Buffer.from(content), name, { type }),
      purpose: "user_data",
    });
    const answer = await gateway.get(`/files/${made.id}/content`);
    expect(answer.headers.get("content-disposition")).toStartWith("attachment;");
    expect(answer.headers.get("content-security-policy")).toBe("sandbox; default-src 'none'");
    await openai.files.delete(made.id);
  });
});

describe("refusals", () => {
  const form = (fields: Record<string, string | Blob>): FormData => {
    const body = new FormData();
    for (const [name, value] of Object.entries(fields)) body.append(name, value);
    return body;
  };
  const send = (body: FormData | string, headers: Record<string, string> = {}): Promise<Response> =>
    fetch(`${gateway.baseUrl}/files`, {
      method: "POST",
      headers: { authorization: `Bearer ${testLlmKey}`, ...headers },
      body,
    });

  test.each([
    ["no purpose", { file: new Blob(["x"]) }, "purpose"],
    ["an unknown purpose", { file: new Blob(["x"]), purpose: "batch_output" }, "purpose"],
    ["no file", { purpose: "batch" }, "file"],
    ["a text as the file", { file: "x", purpose: "batch" }, "file"],
    [
      "an expiry that is too short",
      { file: new Blob(["x"]), purpose: "batch", "expires_after[seconds]": "5" },
      "expires_after[seconds]",
    ],
  ])("%s", async (_, fields, param) => {
    const answer = await send(form(fields as Record<string, string | Blob>));
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({ error: { param } });
  });

  test("a body that is no form", async () => {
    const answer = await send("{}", { "content-type": "application/json" });
    expect(answer.status).toBe(400);
  });

  test("nothing is left of what was refused", () => {
    expect(storedNames()).toEqual([]);
  });

  test("the quota holds for uploads at once", async () => {
    const size = 700_000;
    const answers = await Promise.all(
      Array.from({ length: 6 }, () =>
        send(form({ file: new Blob([new Uint8Array(size)]), purpose: "user_data" })),
      ),
    );
    const statuses = answers.map(({ status }) => status).sort();
    expect(statuses).toEqual([200, 200, 400, 400, 400, 400]);
    const refused = answers.find(({ status }) => status === 400);
    expect(await refused?.json()).toMatchObject({ error: { code: "storage_quota_exceeded" } });
    expect(storedNames().length).toBe(2);
    for await (const { id } of openai.files.list()) await openai.files.delete(id);
    expect(storedNames()).toEqual([]);
  });

  test("texts that are no id, and ids of no file", async () => {
    const { id } = await upload("secret");
    for (const path of [`/files/${id.slice(0, -1)}x`, "/files/..%2f..%2fetc", "/files/%00"])
      expect((await gateway.get(path)).status).toBe(404);
    expect((await gateway.get(`/files/${id.replace("-", "_")}`)).status).toBe(200);
    await openai.files.delete(id);
  });

  test("workspaces with zero data retention store nothing", async () => {
    const headers = {
      authorization: `Bearer ${testManagementKey}`,
      "content-type": "application/json",
    };
    const privacy = (zdr: boolean) =>
      fetch(`${gateway.baseUrl}/security/privacy`, {
        method: "PATCH",
        headers,
        body: JSON.stringify({ zdr }),
      });
    expect((await privacy(true)).status).toBe(200);
    const refused = await send(form({ file: new Blob(["x"]), purpose: "user_data" }));
    expect(refused.status).toBe(403);
    expect(await refused.json()).toMatchObject({
      error: { metadata: { reason: "zero_data_retention" } },
    });
    await privacy(false);
  });
});

/** Runs work while the directory of the files is no directory. */
async function withoutStorage(work: () => Promise<void>): Promise<void> {
  renameSync(directory, `${directory}-away`);
  writeFileSync(directory, "");
  await work().finally(() => {
    rmSync(directory);
    renameSync(`${directory}-away`, directory);
  });
}

test("storage that does not answer is a 503 to send again, and a file is deleted without it", async () => {
  const away = {
    status: 503,
    code: "service_unavailable",
    error: { metadata: { reason: "file_storage" } },
  };
  const kept = await upload("kept");
  await withoutStorage(async () => {
    expect(await errorOf(upload("more"))).toMatchObject(away);
    expect(await errorOf(openai.files.content(kept.id))).toMatchObject(away);
    expect(await openai.files.delete(kept.id)).toMatchObject({ deleted: true });
  });
  expect(await errorOf(openai.files.retrieve(kept.id))).toMatchObject({ status: 404 });
});
