import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { HttpServer } from "./http-server.ts";
import { PathTable, pathsBesideOthers } from "./path-table.ts";
import { Reply } from "./reply.ts";
import {
  refusingOtherMethods,
  withEveryMethodWhereNeeded,
  type CompiledRoutes,
  type MethodRoute,
  type RouteHandler,
  type RouteMethod,
} from "./routes-by-method.ts";

const paths: Readonly<Record<string, readonly RouteMethod[]>> = {
  "/": ["GET"],
  "/keys": ["GET", "POST"],
  "/keys/": ["POST"],
  "/keys/:id": ["GET", "DELETE"],
  "/keys/default": ["POST"],
  "/keys/:id/use": ["POST"],
  "/keys/:key/:part": ["PATCH"],
  "/files/*": ["GET", "POST"],
  "/files/:id": ["DELETE"],
  "/files/:id/parts/*": ["PUT"],
  "/:name/last": ["PUT"],
};

const answering =
  (text: string): RouteHandler =>
  ({ method }) =>
    new Reply(`${text} ${method}`, { headers: {} });

const routes: Readonly<Record<string, MethodRoute>> = Object.fromEntries(
  Object.entries(paths).map(([path, methods]) => [path, { methods, handle: answering(path) }]),
);

const nowhere = answering("nowhere");

const serve = (entered: CompiledRoutes, fallback: RouteHandler): HttpServer =>
  new HttpServer({
    host: "127.0.0.1",
    port: 0,
    routes: entered,
    fallback,
    bodyMemoryBytes: 1024,
    onError: (error) => {
      throw error;
    },
  });

describe("routes of single methods", () => {
  let servers: readonly HttpServer[];
  beforeAll(() => {
    const everyMethod = Object.fromEntries(
      Object.entries(routes).map(([path, { handle }]) => [path, handle]),
    );
    servers = [
      serve(everyMethod, nowhere),
      serve(withEveryMethodWhereNeeded(routes), refusingOtherMethods(nowhere, routes)),
    ];
  });
  afterAll(() => Promise.all(servers.map((server) => server.stop(true))));

  const asked = [
    ...Object.keys(paths).map((path) => path.replaceAll(/:\w+/g, "x").replace("*", "a/b")),
    "/keys/default/use",
    "/keys/x/",
    "/files",
    "/files/",
    "/nothing/here",
  ];

  test.each(asked)("%s reaches the handler that a route of every method would", async (path) => {
    for (const method of ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PURGE"]) {
      const [every, single] = await Promise.all(
        servers.map(async ({ port }) => {
          const response = await fetch(`http://127.0.0.1:${port}${path}`, { method });
          return `${response.status} ${await response.text()}`;
        }),
      );
      expect(single).toBe(every);
    }
  });
});

test("a table of paths prefers names to parameters, and these to a star", () => {
  const table = new PathTable(Object.keys(paths).map((path) => [path, path]));
  const found = [
    "/keys/default",
    "/keys/other",
    "/keys/default/use",
    "/keys/last",
    "/other/last",
    "/files/a",
    "/files/a/b",
    "/files/a/parts/b",
    "/nothing",
  ].map((path) => table.find(path));
  expect(found).toEqual([
    "/keys/default",
    "/keys/:id",
    "/keys/:id/use",
    "/keys/:id",
    "/:name/last",
    "/files/:id",
    "/files/*",
    "/files/:id/parts/*",
    undefined,
  ]);
});

test("paths are named that requests of another route match as well", () => {
  const beside = pathsBesideOthers(["/a", "/a/:id", "/a/b", "/c", "/d/*", "/d/models/:id"]);
  expect([...beside]).toEqual(["/a/b", "/d/models/:id"]);
});
