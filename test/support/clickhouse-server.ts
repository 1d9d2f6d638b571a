/**
 * Serves the real engine of ClickHouse (chdb) through as much of ClickHouse's HTTP interface as its
 * client uses. Arguments: the data directory, the port, a user and a password. Exits when its
 * standard input ends. https://clickhouse.com/docs/interfaces/http
 */
import { gunzipSync } from "node:zlib";
import { Session } from "chdb";

const [directory = "", port = "0", user = "", password = ""] = process.argv.slice(2);
const session = new Session(directory);
const credentials = `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`;

/** What happens to the answers of the next inserts: they are given, lost or held. */
let insertAnswers: "given" | "lost" | "held" = "given";
let turn: Promise<unknown> = Promise.resolve();
/** The database that the session is in; no test drops one. */
let usedDatabase = "";

/** Query parameters that are not settings of the engine. */
const ownNames = new Set(["query", "database", "query_id", "session_id", "default_format"]);

const quoted = (text: string): string =>
  `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;

function withSettings(query: string, parameters: URLSearchParams): string {
  const settings = [...parameters]
    .filter(([name]) => !ownNames.has(name) && !name.startsWith("param_"))
    .filter(
      ([name]) => !["http_headers_progress_interval_ms", "enable_http_compression"].includes(name),
    )
    .map(([name, value]) => `${name} = ${quoted(value)}`);
  if (settings.length === 0 || !/^\s*(select|with|insert)\b/i.test(query)) return query;
  return query.replace(/\sFORMAT\s+(\w+)\s*;?\s*$/i, ` SETTINGS ${settings.join(", ")} FORMAT $1`);
}

async function run(query: string, parameters: URLSearchParams, data: string): Promise<string> {
  const database = parameters.get("database") ?? "default";
  if (database !== usedDatabase) {
    await session.queryAsync(`create database if not exists ${database}`);
    await session.queryAsync(`use ${database}`);
    usedDatabase = database;
  }
  for (const [name, value] of parameters)
    if (name.startsWith("param_")) await session.queryAsync(`set ${name} = ${quoted(value)}`);
  const text = withSettings(query, parameters);
  const result = await session.queryAsync(data === "" ? text : `${text}\n${data}`);
  return result.text();
}

async function answer(request: Request): Promise<Response> {
  const { pathname, searchParams } = new URL(request.url);
  if (pathname === "/ping") return new Response("Ok.\n");
  if (pathname.startsWith("/answers/")) {
    insertAnswers = pathname.slice("/answers/".length) as typeof insertAnswers;
    return new Response("ok");
  }
  if (request.headers.get("authorization") !== credentials)
    return new Response(
      "Code: 516. DB::Exception: Authentication failed. (AUTHENTICATION_FAILED)",
      {
        status: 403,
        headers: { "x-clickhouse-exception-code": "516" },
      },
    );
  const bytes = new Uint8Array(await request.arrayBuffer());
  const body = new TextDecoder().decode(
    request.headers.get("content-encoding") === "gzip" ? gunzipSync(bytes) : bytes,
  );
  const inUrl = searchParams.get("query");
  const [query, data] = inUrl === null ? [body, ""] : [inUrl, body];
  try {
    // The engine has a single session, so a setting of one query lasts for the session.
    const work = turn.then(() => run(query, searchParams, data));
    turn = work.catch(() => undefined);
    const text = await work;
    if (/^\s*insert/i.test(query) && insertAnswers !== "given") {
      console.log("inserted");
      if (insertAnswers === "held") await new Promise(() => undefined);
      insertAnswers = "given";
      return new Response("lost", { status: 500 });
    }
    return new Response(text, { headers: { "x-clickhouse-query-id": crypto.randomUUID() } });
  } catch (error) {
    return new Response(error instanceof Error ? error.message : String(error), { status: 500 });
  }
}

const server = Bun.serve({
  hostname: "127.0.0.1",
  port: Number(port),
  idleTimeout: 0,
  fetch: answer,
});
console.log(`ready ${server.port}`);
process.stdin.on("end", () => process.exit(0)).resume();
