import * as redocly from "@redocly/openapi-core";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { z } from "zod";
import { endpoints } from "../../../src/endpoints/index.ts";
import {
  startGateway,
  testLlmKey,
  testManagementKey,
  type TestGateway,
} from "../../support/gateway.ts";
import { chatRequest } from "./chat-request.ts";

type Json = Record<string, unknown>;

/**
 * What is used of Redocly. Its own types derive every field of a configuration from a JSON schema,
 * which takes the compiler as long as a hundred files.
 */
const { createConfig, lintFromString } = redocly as unknown as {
  createConfig(options: { extends: string[] }): Promise<object>;
  lintFromString(options: {
    source: string;
    absoluteRef: string;
    config: object;
  }): Promise<{ ruleId: string; message: string; location: { pointer?: string }[] }[]>;
};

let gateway: TestGateway;
let text = "";
beforeAll(async () => {
  gateway = await startGateway();
  text = await (await gateway.get("/openapi.json")).text();
});
afterAll(() => gateway.stop());

/** What Redocly's recommended rules find in a document, each with its place. */
async function findings(source: string): Promise<string[]> {
  const config = await createConfig({ extends: ["recommended"] });
  const problems = await lintFromString({ source, absoluteRef: "openapi.json", config });
  return problems.map(
    ({ ruleId, message, location }) => `${ruleId} at ${location[0]?.pointer ?? ""}: ${message}`,
  );
}

test("Redocly's recommended rules report nothing, and every example matches its schema", async () => {
  expect(await findings(text)).toEqual([]);
}, 240_000);

test("the rules detect a missing summary, a dangling reference and a mismatched example", async () => {
  const document = JSON.parse(text) as { paths: Record<string, Record<string, Json>> };
  const operation = document.paths["/keys"]?.["get"];
  delete operation?.["summary"];
  const budget = '"#/components/schemas/Budget"';
  const ready = '"status":"ready"';
  const withWords = Object.entries(document.paths).filter(([path, item]) => {
    const words = JSON.stringify(item);
    return path === "/keys" || words.includes(budget) || words.includes(ready);
  });
  const broken = JSON.stringify({ ...document, paths: Object.fromEntries(withWords) })
    .replace(budget, '"#/components/schemas/Nowhere"')
    .replace(ready, '"status":"asleep"');
  const rules = new Set((await findings(broken)).map((finding) => finding.split(" ")[0]));
  // Few of the paths are in the document, and the components are those of all.
  rules.delete("no-unused-components");
  expect(rules).toEqual(
    new Set(["operation-summary", "no-unresolved-refs", "no-invalid-media-type-examples"]),
  );
}, 240_000);

const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The fields of schemas below a value, by their paths, that say nothing of themselves. */
function silentFields(value: unknown, path = ""): string[] {
  if (Array.isArray(value))
    return value.flatMap((each, index) => silentFields(each, `${path}/${index}`));
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([key, inner]) => {
    if (key === "example" || key === "const" || key === "enum") return [];
    const isFields =
      key === "properties" && isObject(inner) && !("properties" in inner && "type" in inner);
    const silent = isFields
      ? Object.entries(inner).filter(([, field]) => !isObject(field) || !("description" in field))
      : [];
    return [...silent.map(([name]) => `${path}/${name}`), ...silentFields(inner, `${path}/${key}`)];
  });
}

test("every field of every request and response has a description", () => {
  const document = JSON.parse(text) as Json;
  expect(silentFields(document)).toEqual([]);
  expect(silentFields({ type: "object", properties: { silent: { type: "string" } } })).toEqual([
    "/silent",
  ]);
});

test("every operation has an example of its success response", () => {
  const { paths } = JSON.parse(text) as {
    paths: Record<string, Record<string, { responses?: Json }>>;
  };
  const without = Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).flatMap(([method, { responses }]) => {
      const { content } = Object(responses?.["200"] ?? responses?.["201"]) as {
        content?: Record<string, Json>;
      };
      return Object.entries(content ?? {})
        .filter(
          ([type, media]) =>
            type !== "application/zip" && type !== "audio/*" && media["example"] === undefined,
        )
        .map(([type]) => `${method} ${path} ${type}`);
    }),
  );
  expect(without).toEqual([]);
});

/** Routes that are asked with more than their path. */
const queries: Record<string, string> = {
  "/models/recommend": "?task=coding",
  "/generation": "?id=",
  "/credits/quote": "?amount=25",
  "/analytics/usage": "?group_by=model,key,provider,team,app,customer,preset,session,tag:release",
};

test("responses of read routes match the document and have no undocumented fields", async () => {
  const said = (await (
    await gateway.post("/chat/completions", chatRequest({ model: "sandbox/echo" }))
  ).json()) as { id: string };
  await gateway.post(
    "/keys",
    { name: "documented", limit: 5 },
    { headers: { authorization: `Bearer ${testManagementKey}` } },
  );
  const differing: string[] = [];
  let read = 0;
  for (const { method, base, path, access, response, otherResponseTypes } of endpoints) {
    if (
      method !== "GET" ||
      base !== "api" ||
      path.includes(":") ||
      response === undefined ||
      otherResponseTypes !== undefined
    )
      continue;
    const secret = access.managementScope === undefined ? testLlmKey : testManagementKey;
    const query = path === "/generation" ? `?id=${said.id}` : (queries[path] ?? "");
    const answer = await fetch(gateway.baseUrl + path + query, {
      headers: { authorization: `Bearer ${secret}` },
    });
    if (answer.status !== 200) continue;
    read += 1;
    const body: unknown = await answer.json();
    const parsed = z.safeParse(response(), body);
    if (!parsed.success) differing.push(`${path}: ${z.prettifyError(parsed.error)}`);
    else if (JSON.stringify(sorted(parsed.data)) !== JSON.stringify(sorted(body)))
      differing.push(`${path}: fields are not described`);
  }
  expect(differing).toEqual([]);
  expect(read).toBeGreaterThan(25);
});

/** The value with the fields of its objects in the order of their names. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  return isObject(value)
    ? Object.fromEntries(
        Object.keys(value)
          .sort()
          .map((key) => [key, sorted(value[key])]),
      )
    : value;
}
