import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { missingS3, type S3Server, startS3Server } from "../../test/support/s3-server.ts";
import { S3Bucket } from "./s3-bucket.ts";

async function* pieces(count: number): AsyncGenerator<Uint8Array> {
  for (let index = 0; index < count; index += 1) yield Buffer.alloc(65_536, index % 251);
}

describe.skipIf(missingS3 !== undefined)(
  `an S3 service${missingS3 ? ` (missing: ${missingS3})` : ""}`,
  () => {
    let server: S3Server;
    beforeAll(async () => {
      server = await startS3Server();
    }, 240_000);
    afterAll(() => server.stop());

    test("writes, reads ranges, lists and deletes, and leaves nothing of what was cut", async () => {
      const bucket = new S3Bucket({
        bucket: "files",
        prefix: "test",
        endpoint: server.endpoint,
        region: "us-east-1",
        accessKeyId: "key",
        secretAccessKey: "secret",
      });
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
