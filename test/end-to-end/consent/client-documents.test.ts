import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import {
  ClientDocumentError,
  ClientDocuments,
  documentBytesMax,
} from "../../../src/consent/client-documents.ts";
import { parseRange } from "../../../src/platform/kernel/network/address-range.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { at, textAt } from "../api/at.ts";
import { type PeopledGateway, startPeopled } from "../api/people-browser.ts";
import { AppSide, authorizePath, authorizeQuery, callback, decideAt, placeOf } from "./flows.ts";

type Answer = (id: string) => Response;

const json = (body: unknown, init: ResponseInit = {}): Response =>
  new Response(JSON.stringify(body), {
    ...init,
    headers: { "content-type": "application/json", ...(init.headers as Record<string, string>) },
  });
const described = (id: string, changes: Record<string, unknown> = {}): Record<string, unknown> => ({
  client_id: id,
  client_name: "A described app",
  redirect_uris: [callback, "http://127.0.0.1/cb"],
  token_endpoint_auth_method: "none",
  ...changes,
});
const changed =
  (changes: Record<string, unknown>): Answer =>
  (id) =>
    json(described(id, changes));

/** Documents that are clients. */
const good: Record<string, Answer> = {
  "/client.json": changed({}),
  "/sparse.json": (id) => json({ client_id: id, redirect_uris: [callback] }),
  "/typed.json": (id) =>
    json(described(id), {
      headers: { "content-type": "application/client-metadata+json; charset=utf-8" },
    }),
  "/with?query=1": changed({}),
};

/** Documents that the gateway refuses, and what the page says to the person. */
const hostile: readonly [path: string, answer: Answer, told: string][] = [
  [
    "/redirect.json",
    () => new Response(null, { status: 302, headers: { location: "/client.json" } }),
    "redirects",
  ],
  [
    "/inward.json",
    () =>
      new Response(null, { status: 307, headers: { location: "http://169.254.169.254/latest" } }),
    "redirects",
  ],
  ["/gone.json", () => json({ secret: "of the intranet" }, { status: 404 }), "answered 404"],
  ["/error.json", () => json({ secret: "of the intranet" }, { status: 500 }), "answered 500"],
  ["/created.json", (id) => json(described(id), { status: 201 }), "answered 201"],
  [
    "/page.html",
    (id) =>
      new Response(JSON.stringify(described(id)), { headers: { "content-type": "text/html" } }),
    "not served as JSON",
  ],
  [
    "/untyped",
    (id) => new Response(new TextEncoder().encode(JSON.stringify(described(id)))),
    "not served as JSON",
  ],
  [
    "/huge.json",
    changed({ padding: "x".repeat(documentBytesMax) }),
    `more than ${documentBytesMax} bytes`,
  ],
  [
    "/bomb.json",
    (id) =>
      new Response(
        Bun.gzipSync(
          Buffer.from(JSON.stringify(described(id, { padding: "x".repeat(50_000_000) }))),
        ),
        {
          headers: { "content-type": "application/json", "content-encoding": "gzip" },
        },
      ),
    "compressed",
  ],
  [
    "/broken.json",
    () => new Response("{", { headers: { "content-type": "application/json" } }),
    "is not JSON",
  ],
  ["/list.json", () => json([]), "is not a JSON object"],
  [
    "/other-id.json",
    changed({ client_id: "https://other.example/client.json" }),
    "names another client_id",
  ],
  ["/no-id.json", changed({ client_id: undefined }), "no valid client_id"],
  ["/no-redirects.json", changed({ redirect_uris: [] }), "no valid redirect_uris"],
  ["/text-redirects.json", changed({ redirect_uris: callback }), "no valid redirect_uris"],
  [
    "/script.json",
    changed({ redirect_uris: [callback, "javascript:alert(1)"] }),
    "must not use the scheme javascript:",
  ],
  ["/plain.json", changed({ redirect_uris: ["http://client.example/cb"] }), "must use https"],
  ["/fragment.json", changed({ redirect_uris: [`${callback}#x`] }), "must not have a fragment"],
  ["/secret.json", changed({ client_secret: "shared with everybody" }), "holds a secret"],
  ["/secret-end.json", changed({ client_secret_expires_at: 0 }), "holds a secret"],
  [
    "/basic.json",
    changed({ token_endpoint_auth_method: "client_secret_basic" }),
    "token_endpoint_auth_method must be none",
  ],
  [
    "/post.json",
    changed({ token_endpoint_auth_method: "client_secret_post" }),
    "token_endpoint_auth_method must be none",
  ],
  [
    "/hmac.json",
    changed({ token_endpoint_auth_method: "client_secret_jwt" }),
    "token_endpoint_auth_method must be none",
  ],
  [
    "/jwt.json",
    changed({ token_endpoint_auth_method: "private_key_jwt" }),
    "token_endpoint_auth_method must be none",
  ],
  [
    "/grants.json",
    changed({ grant_types: ["client_credentials"] }),
    "does not use authorization codes",
  ],
  ["/types.json", changed({ response_types: ["token"] }), "does not use authorization codes"],
  ["/name.json", changed({ client_name: { evil: true } }), "no valid client_name"],
];

const answers = new Map<string, Answer>([
  ...Object.entries(good),
  ...hostile.map(([path, answer]) => [path, answer] as const),
]);

describe("apps identified by the URL of their client metadata document", () => {
  const clock = new FakeClock();
  let publisher: Bun.Server<undefined>;
  let asked: Request[] = [];
  let people: PeopledGateway;
  let guarded: PeopledGateway;
  beforeAll(async () => {
    publisher = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch(request) {
        asked.push(request);
        const { pathname, search } = new URL(request.url);
        return (
          answers.get(pathname + search)?.(request.url) ?? new Response("nothing", { status: 404 })
        );
      },
    });
    people = await startPeopled(undefined, { clientDocumentNetworks: ["127.0.0.0/8"] }, { clock });
    guarded = await startPeopled(undefined);
  }, 240_000);
  beforeEach(() => {
    asked = [];
    // Each test has its own minute of requests for documents.
    clock.advance(61_000);
  });
  afterAll(async () => {
    await people.stop();
    await guarded.stop();
    await publisher.stop(true);
  });

  const idOf = (path: string): string => `http://127.0.0.1:${publisher.port}${path}`;
  const pathOf = (id: string, changes: Record<string, string | null> = {}): string =>
    `${authorizePath}?${authorizeQuery(id, changes)}`;
  const shown = async (id: string, at = people): Promise<[number, string]> => {
    const answer = await at.owner.ask("GET", pathOf(id));
    return [answer.status, await answer.text()];
  };

  test("the authorization server metadata announces support", async () => {
    const answer = await fetch(`${people.gateway().origin}/.well-known/oauth-authorization-server`);
    expect(at(await answer.json(), "client_id_metadata_document_supported")).toBe(true);
  });

  test.each(Object.keys(good))(
    "%s is connected, refreshed and listed without registration",
    async (path) => {
      const app = new AppSide(people.gateway().baseUrl);
      const id = idOf(path);
      const code = placeOf(await decideAt(people.owner, pathOf(id))).searchParams.get("code") ?? "";
      const tokens: unknown = await (await app.exchange({ code, client_id: id })).json();
      expect((await app.bearer(textAt(tokens, "access_token"), "/auth/key")).status).toBe(200);
      expect(
        (await app.refresh(textAt(tokens, "refresh_token"), { client_id: idOf("/other.json") }))
          .status,
      ).toBe(400);
      expect((await app.refresh(textAt(tokens, "refresh_token"), { client_id: id })).status).toBe(
        200,
      );
      const [connection] = Object(await people.owner.json("GET", "/connections")).data;
      expect(connection.client.id).toBe(id);
    },
  );

  test("the page shows the host that publishes the document, which is read without credentials", async () => {
    clock.advance(86_400_000);
    const [status, page] = await shown(idOf("/client.json"));
    expect([status, page.includes("<dt>Published by</dt><dd>127.0.0.1:")]).toEqual([200, true]);
    expect(page).toContain("It goes back to client.example, which is not where it is published.");
    const [request] = asked;
    expect(
      ["cookie", "authorization", "referer"].map((name) => request?.headers.get(name) ?? null),
    ).toEqual([null, null, null]);
    expect(request?.method).toBe("GET");
  });

  test("a redirect URI must match the document exactly, with any port on loopback", async () => {
    const id = idOf("/client.json");
    for (const [uri, status] of [
      [`${callback}/`, 400],
      [`${callback}?x=1`, 400],
      ["https://client.example.evil.example/cb", 400],
      ["http://127.0.0.1:51234/cb", 200],
      ["http://127.0.0.1:51234/other", 400],
      ["http://localhost/cb", 400],
      [callback, 200],
    ] as const) {
      expect([
        uri,
        (await people.owner.ask("GET", pathOf(id, { redirect_uri: uri }))).status,
      ]).toEqual([uri, status]);
    }
  });

  test.each(hostile)("%s is refused and not quoted", async (path, _answer, told) => {
    const answer = await people.owner.ask("GET", pathOf(idOf(path)));
    const page = await answer.text();
    expect([answer.status, answer.headers.get("location")]).toEqual([400, null]);
    expect(page).toContain(told);
    expect(page).not.toContain("intranet");
    expect(asked).toHaveLength(1);
  });

  test.each([
    "https://127.0.0.1/client.json",
    "https://localhost/client.json",
    "https://[::1]/client.json",
    "https://10.0.0.1/client.json",
    "https://169.254.169.254/latest/meta-data",
    "https://[fd00::1]/client.json",
    "https://[::ffff:127.0.0.1]/client.json",
    "https://2130706433/client.json",
    "https://0x7f.1/client.json",
    "https://127.1/client.json",
    "https://client.example",
    "https://client.example/",
    "https://client.example/a/../client.json",
    "https://client.example/%2e%2e/client.json",
    "https://client.example/c#x",
    "https://user@client.example/c",
    "https://u:p@client.example/c",
    "https://CLIENT.example/c",
    "https://client.example:443/c",
    "https://name.invalid/client.json",
    `https://client.example/${"c".repeat(1_000)}`,
    "http://client.example/client.json",
    "ftp://client.example/c",
    "https:client.example",
    "file:///etc/passwd",
    "data:application/json,{}",
  ])("the client id %s is refused", async (id) => {
    const [status, page] = await shown(id, guarded);
    expect([status, page.includes("cannot be trusted")]).toEqual([400, true]);
  });

  test("a document on a private network is read only if the operator allows it", async () => {
    const [status] = await shown(idOf("/client.json"), guarded);
    expect([status, asked.length]).toEqual([400, 0]);
  });

  test("no document is read for a signed-out person, at the token endpoint or for a device", async () => {
    const id = idOf("/client.json");
    const answer = await people.stranger().ask("GET", pathOf(id));
    expect([
      answer.status,
      answer.headers.get("location")?.startsWith("/sign-in?return_to="),
    ]).toEqual([303, true]);
    const app = new AppSide(people.gateway().baseUrl);
    expect(at(await (await app.exchange({ code: "unknown", client_id: id })).json(), "error")).toBe(
      "invalid_grant",
    );
    expect(
      at(await (await app.form("/oauth/device/code", { client_id: id })).json(), "error"),
    ).toBe("invalid_client");
    expect(asked).toHaveLength(0);
  });

  test("a document is cached for its max-age within bounds, and an invalid one is not cached", async () => {
    const id = idOf("/lasting.json");
    let maxAge = "max-age=600";
    answers.set("/lasting.json", () =>
      json(described(id), { headers: { "cache-control": maxAge } }),
    );
    await shown(id);
    await shown(id);
    expect(asked).toHaveLength(1);
    clock.advance(601_000);
    maxAge = "no-store";
    await shown(id);
    await shown(id);
    expect(asked).toHaveLength(2);
    clock.advance(61_000);
    maxAge = "max-age=999999999";
    await shown(id);
    clock.advance(86_401_000);
    answers.set("/lasting.json", changed({ client_secret: "leaked" }));
    expect((await shown(id))[0]).toBe(400);
    answers.set("/lasting.json", changed({}));
    expect((await shown(id))[0]).toBe(200);
    expect(asked).toHaveLength(5);
  });

  test("a person can have twenty documents read per minute, and parallel reads of one URL are shared", async () => {
    for (let read = 0; read < 20; read += 1)
      expect((await shown(idOf("/gone.json")))[1]).toContain("answered 404");
    expect((await shown(idOf("/gone.json")))[1]).toContain("too often");
    clock.advance(61_000);
    asked = [];
    const gate = Promise.withResolvers<void>();
    const arrived = Promise.withResolvers<void>();
    publisher.reload({
      async fetch(request) {
        asked.push(request);
        arrived.resolve();
        await gate.promise;
        return json(described(request.url));
      },
    });
    const first = shown(idOf("/waited.json"));
    await arrived.promise;
    const others = Promise.all([first, shown(idOf("/waited.json")), shown(idOf("/waited.json"))]);
    gate.resolve();
    expect((await others).map(([status]) => status)).toEqual([200, 200, 200]);
    expect(asked).toHaveLength(1);
  });
});

describe("reading a client metadata document", () => {
  const refusalOf = async (documents: ClientDocuments, id: string): Promise<string> =>
    documents.find(id, "usr_1").then(
      () => "",
      (error: unknown) => (error instanceof ClientDocumentError ? error.message : String(error)),
    );
  const clock = new FakeClock();

  test("refuses host names that resolve to a private address, also among others", async () => {
    for (const addresses of [
      ["127.0.0.1"],
      ["93.184.216.34", "10.0.0.1"],
      ["::1"],
      ["fd00::1"],
      ["64:ff9b::7f00:1"],
      ["0.0.0.0"],
    ]) {
      const documents = new ClientDocuments({
        clock,
        guard: { allowed: [], resolve: () => Promise.resolve(addresses) },
      });
      expect(await refusalOf(documents, "https://client.example/c")).toContain("private network");
    }
  });

  test("times out on slow DNS, a slow response or a stalled body", async () => {
    const slow: readonly (() => Response | Promise<Response>)[] = [
      () => new Promise<Response>(() => undefined),
      () =>
        new Response(new ReadableStream({ start: (stream) => stream.enqueue("{") }), {
          headers: { "content-type": "application/json" },
        }),
    ];
    for (const fetch of slow) {
      const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch });
      const guard = { allowed: [parseRange("127.0.0.0/8")].filter((range) => range !== undefined) };
      const documents = new ClientDocuments({ clock, patienceMs: 100, guard });
      expect(await refusalOf(documents, `http://127.0.0.1:${server.port}/c`)).toContain(
        "did not answer within",
      );
      await server.stop(true);
    }
    const nameless = new ClientDocuments({
      clock,
      patienceMs: 20,
      guard: { allowed: [], resolve: () => new Promise(() => undefined) },
    });
    expect(await refusalOf(nameless, "https://client.example/c")).toContain(
      "did not answer within",
    );
  });
});
