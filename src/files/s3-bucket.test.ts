import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, jest, test } from "bun:test";
import { useRealTimers } from "../../test/support/real-timers.ts";
import { missingS3, type S3Server, startS3Server } from "../../test/support/s3-server.ts";
import { S3Bucket } from "./s3-bucket.ts";

async function* pieces(count: number): AsyncGenerator<Uint8Array> {
  for (let index = 0; index < count; index += 1) yield Buffer.alloc(65_536, index % 251);
}

const bucketAt = (endpoint: string): S3Bucket =>
  new S3Bucket({
    bucket: "files",
    prefix: "test",
    endpoint,
    region: "us-east-1",
    accessKeyId: "key",
    secretAccessKey: "secret",
  });

describe.skipIf(missingS3 !== undefined)(
  `an S3 service${missingS3 ? ` (missing: ${missingS3})` : ""}`,
  () => {
    let server: S3Server;
    beforeAll(async () => {
      server = await startS3Server();
    }, 240_000);
    afterAll(() => server.stop());

    test("writes, reads ranges, lists and deletes, and leaves nothing of what was cut", async () => {
      const bucket = bucketAt(server.endpoint);
      await bucket.write("large", pieces(400));
      const read: Uint8Array[] = [];
      for await (const piece of bucket.read("large", { from: 65_530, to: 65_545 }))
        read.push(piece);
      expect(Buffer.concat(read).toString("hex")).toBe(`${"00".repeat(6)}${"01".repeat(9)}`);
      async function* broken(): AsyncGenerator<Uint8Array> {
        yield* pieces(150);
        throw new Error("the client left");
      }
      await expect(bucket.write("cut", broken())).rejects.toThrow("the client left");
      const names = async () => (await Array.fromAsync(bucket.list())).map(({ name }) => name);
      expect(await names()).toEqual(["large"]);
      await bucket.remove("large");
      await bucket.remove("large");
      expect(await names()).toEqual([]);
    });
  },
);

describe("an S3 service that answers when a test says so", () => {
  type Asked = PromiseWithResolvers<Response> & { query: string };
  const begun =
    "<InitiateMultipartUploadResult><UploadId>up</UploadId></InitiateMultipartUploadResult>";
  let asked: Asked[];
  let onAsked = (): void => undefined;
  let server: Bun.Server<undefined>;
  let bucket: S3Bucket;
  beforeAll(() => {
    server = Bun.serve({
      port: 0,
      idleTimeout: 0,
      async fetch(request) {
        await request.arrayBuffer();
        const { search: query, pathname } = new URL(request.url);
        // What a write leaves is deleted behind it.
        if (request.method === "DELETE" && !pathname.endsWith("/gone")) return new Response();
        if (query.includes("uploads")) return new Response(begun);
        const answer: Asked = { ...Promise.withResolvers<Response>(), query };
        asked.push(answer);
        onAsked();
        return answer.promise;
      },
    });
    bucket = bucketAt(server.url.href);
  });
  beforeEach(() => {
    asked = [];
    jest.useFakeTimers();
  });
  afterEach(() => void useRealTimers());
  afterAll(() => server.stop(true));

  /** Resolves with the next request. */
  async function next(): Promise<Asked> {
    const first = asked.shift();
    if (first !== undefined) return first;
    await new Promise<void>((resolve) => void (onAsked = resolve));
    return next();
  }

  const operations: Record<string, () => Promise<unknown>> = {
    "a small object": () => bucket.write("small", pieces(1)),
    "a part": () => bucket.write("large", pieces(100)),
    "the bytes of an object": () => Array.fromAsync(bucket.read("k", { from: 0, to: 10 })),
    "a deletion": () => bucket.remove("gone"),
    "a list": () => Array.fromAsync(bucket.list()),
  };
  test.each(Object.keys(operations))("is not awaited for %s beyond 30 s", async (name) => {
    const outcome = operations[name]?.().catch((error: unknown) => error);
    await next();
    jest.advanceTimersByTime(29_999);
    const early = await Promise.race([outcome, Promise.resolve("waits")]);
    jest.advanceTimersByTime(1);
    expect([early, await outcome]).toEqual(["waits", new Error("silent for 30 s")]);
  });

  test("breaks off no upload whose parts it takes, and no download whose bytes it sends", async () => {
    const written = bucket.write("large", pieces(160));
    for (let { query, resolve } = await next(); ; { query, resolve } = await next()) {
      jest.advanceTimersByTime(29_000);
      const isPart = query.includes("partNumber");
      resolve(new Response(isPart ? "" : "<ETag>all</ETag>", { headers: { etag: '"part"' } }));
      if (!isPart) break;
    }
    await written;
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    const writer = writable.getWriter();
    const read = bucket.read("large", { from: 0, to: 3 });
    const first = read.next();
    (await next()).resolve(new Response(readable));
    for (const [index, piece] of [first, undefined, undefined].entries()) {
      const coming = piece ?? read.next();
      jest.advanceTimersByTime(29_000);
      await writer.write(Uint8Array.of(index));
      expect(await coming).toEqual({ done: false, value: Uint8Array.of(index) });
    }
    await read.return(undefined);
  });
});
