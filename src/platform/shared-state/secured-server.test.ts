import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createAuthority } from "../../../test/support/certificates.ts";
import { hasRedis, redisMissing, startRedis, startSentinel } from "../../../test/support/redis.ts";
import { startRedisCluster } from "../../../test/support/redis-cluster.ts";
import { silentLogger } from "../../../test/support/silent-logger.ts";
import { openSharedState } from "./open-shared-state.ts";
import { SharedChannel } from "./shared-channel.ts";
import { SharedStateAwayError, SharedStateUnfitError } from "./shared-state-error.ts";
import { SharedState } from "./shared-state.ts";
import { SharedValues } from "./shared-values.ts";

describe.skipIf(!hasRedis)(`a Valkey server with TLS and users${redisMissing}`, () => {
  const directory = mkdtempSync(join(tmpdir(), "switchyard-tls-"));
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  const authority = createAuthority();
  const certificates = [authority.cert];
  const pathOf = (name: string): string => join(directory, name);
  const tlsSettings = (): Record<string, string> => {
    const { cert, key } = authority.issue("127.0.0.1");
    const files = { cert, key, ca: authority.cert, acl: rights };
    for (const [name, text] of Object.entries(files)) writeFileSync(pathOf(name), text);
    return {
      "tls-port": "yes",
      "tls-cert-file": pathOf("cert"),
      "tls-key-file": pathOf("key"),
      "tls-ca-cert-file": pathOf("ca"),
      "tls-auth-clients": "no",
    };
  };
  const startSecured = async () => {
    const server = await startRedis({ ...tlsSettings(), aclfile: pathOf("acl") });
    const urlFor = (login: string): string => server.url.replace("redis://", `rediss://${login}@`);
    return { server, urlFor };
  };
  /** The rights that the documentation says a gateway needs. */
  const rights = `user default off
user gateway on >secret ~switchyard:* &switchyard:* -@all +@read +@write +@scripting +@transaction +@connection +@pubsub +info +time
`;

  test("works with its certificate and the documented rights, and reports what is missing", async () => {
    const { server, urlFor } = await startSecured();
    const url = urlFor("gateway:secret");
    const options = { logger: silentLogger, waitMs: 1_000 };
    const state = await SharedState.open({ ...options, url, certificates });
    const values = new SharedValues<string>({ shared: state, name: "v", bytesMax: 10_000 });
    await values.set("a", "kept", 60);
    expect(await values.get("a")).toBe("kept");
    expect(await state.setIfAbsent("once", "1", 60_000)).toBe(true);
    const channel = await SharedChannel.open({
      url,
      certificates,
      shared: state,
      nodeId: "listens",
      logger: silentLogger,
    });
    const heard = new Promise((resolve) => channel.on("words", resolve));
    const isListening = new Promise<void>((resolve) => channel.onListening(resolve));
    await isListening;
    await state.publish("words", "other hello");
    expect(await heard).toBe("hello");
    channel.close();
    state.close();

    await expect(
      SharedState.open({ ...options, url: urlFor("gateway:wrong"), certificates }),
    ).rejects.toThrow(SharedStateUnfitError);
    await expect(SharedState.open({ ...options, url })).rejects.toThrow(SharedStateAwayError);
    await expect(
      SharedState.open({ ...options, url: `${url}/9999`, certificates }),
    ).rejects.toThrow("does not give database 9999");
    await server.kill();
  }, 240_000);

  test("that runs no scripts fails the start, with the right that is missing", async () => {
    for (const [forbidden, command] of [
      ["-evalsha", "EVALSHA"],
      ["-eval", "EVAL"],
    ]) {
      const { server } = await startSecured();
      writeFileSync(pathOf("acl"), rights.replace("+time", `+time ${forbidden}`));
      await server.kill();
      await server.restart();
      const opening = SharedState.open({
        url: server.url.replace("redis://", "rediss://gateway:secret@"),
        certificates,
        logger: silentLogger,
        waitMs: 5_000,
      });
      await expect(opening).rejects.toThrow(SharedStateUnfitError);
      await expect(opening).rejects.toThrow(new RegExp(`does not run ${command} \\(NOPERM`));
      await server.kill();
    }
  }, 240_000);

  test("is found through sentinels with TLS and a password; a wrong password fails the start", async () => {
    const { server } = await startSecured();
    const sentinel = await startSentinel("mymaster", server.url, [
      ...["cert", "key", "ca-cert"].map(
        (file) => `tls-${file}-file ${join(directory, file.replace("-cert", ""))}`,
      ),
      "tls-auth-clients no",
      "tls-replication yes",
      "requirepass watched",
      "sentinel auth-user mymaster gateway",
      "sentinel auth-pass mymaster secret",
    ]);
    const open = (
      password: string,
      { name = "mymaster", waitMs = 10_000 } = {},
    ): Promise<SharedState> =>
      SharedState.open({
        url: `rediss://gateway:secret@${name}`,
        sentinels: [sentinel.url.replace("redis://", `rediss://:${password}@`)],
        certificates,
        logger: silentLogger,
        waitMs,
      });
    const state = await open("watched");
    await state.set("a", "kept", 60_000);
    expect(await state.get("a")).toBe("kept");
    state.close();
    await expect(open("wrong", { waitMs: 4_000 })).rejects.toThrow(
      /as 127\.0\.0\.1:\d+ name it refuses: .*WRONGPASS/,
    );
    await expect(open("watched", { name: "other", waitMs: 1_000 })).rejects.toThrow(
      /no Valkey or Redis answers at other as/,
    );
    await sentinel.kill();
    await server.kill();
  }, 240_000);

  test("in a cluster is used with TLS and its password on each server", async () => {
    const cluster = await startRedisCluster({
      primaries: 2,
      settings: { ...tlsSettings(), "tls-cluster": "yes", requirepass: "secret" },
      access: { password: "secret", tls: { ca: authority.cert } },
    });
    const options = { certificates, logger: silentLogger, waitMs: 30_000 };
    const urlFor = (password: string): string =>
      cluster.url.replace("redis://", `rediss://:${password}@`);
    const shared = await openSharedState({ ...options, url: urlFor("secret") });
    for (const part of shared.parts) {
      await part.set("a", "kept", 60_000);
      expect(await part.get("a")).toBe("kept");
    }
    shared.close();
    await expect(
      openSharedState({ ...options, url: urlFor("wrong"), waitMs: 5_000 }),
    ).rejects.toThrow("WRONGPASS");
    await cluster.stop();
  }, 240_000);
});
