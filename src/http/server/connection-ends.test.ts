import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { closing, get, HttpServerScene, post } from "../../../test/support/http-server-scene.ts";
import { RawClient } from "../../../test/support/raw-client.ts";

let scene: HttpServerScene;
beforeEach(() => void (scene = new HttpServerScene()));
afterEach(() => scene.server.stop(true));

describe("a client that leaves", () => {
  test("aborts the signal of its request", async () => {
    const each = scene.client().write(post("/hold", ""));
    await scene.reached.promise;
    each.socket.destroy();
    await scene.aborted.promise;
    scene.held.resolve();
  });

  test.each(["/silent", "/endless"])("cancels its stream (%s)", async (path) => {
    const each = scene.client().write(get(path));
    await each.until((text) => text.includes("\r\n\r\n"));
    each.socket.destroy();
    await scene.cancelled.promise;
  });

  test("in the middle of its body is answered nothing, and the next client everything", async () => {
    const each = scene.client().write("POST /echo HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n");
    each.socket.end();
    expect(await each.untilOver()).toBe("");
    expect(await scene.ask(get("/page", closing))).toEndWith("a page");
    expect(scene.errors).toEqual([]);
  });
});

describe("a server that stops", () => {
  test("having announced it, closes connections with their next answer", async () => {
    const each = scene.client().write(get("/page"));
    await each.until((text) => text.endsWith("a page"));
    scene.server.announceClosing();
    expect(await each.write(get("/page")).untilOver()).toContain("Connection: close");
    await scene.server.stop();
  });

  test("lets what is under way finish, and closes what is idle", async () => {
    const { server } = scene;
    const idle = scene.client().write(get("/page"));
    await idle.until((text) => text.endsWith("a page"));
    const busy = scene.client().write(post("/hold", ""));
    await scene.reached.promise;
    const stopped = server.stop();
    expect(await idle.untilOver()).toEndWith("a page");
    expect([server.pendingRequests, busy.over]).toEqual([1, false]);
    scene.held.resolve();
    expect(await busy.untilOver()).toEndWith("held");
    await stopped;
    expect(await new RawClient(server.port).untilOver()).toBe("");
  });

  test("abruptly cuts off what is under way", async () => {
    const busy = scene.client().write(post("/hold", ""));
    await scene.reached.promise;
    const stopped = scene.server.stop(true);
    expect(await busy.untilOver()).toBe("");
    scene.held.resolve();
    await stopped;
  });
});

test("two servers do not share a port", () => {
  expect(() => new HttpServerScene({ port: scene.server.port })).toThrow();
});
