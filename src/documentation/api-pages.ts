import { brand } from "../platform/kernel/brand.ts";
import type { PageEntry } from "./contents.ts";
import { headingId } from "./render-markdown.ts";
import { type JsonFields, fieldsOf, entriesOf } from "../platform/kernel/json/json-members.ts";

const text = (value: unknown): string => (typeof value === "string" ? value : "");

/** Resolves a reference to a component of the document. */
function resolve(document: JsonFields, value: unknown): JsonFields {
  const found = fieldsOf(value);
  const reference = text(found["$ref"]);
  if (reference === "") return found;
  const target = reference
    .replace("#/", "")
    .split("/")
    .reduce<unknown>((inner, name) => fieldsOf(inner)[name], document);
  return {
    ...fieldsOf(target),
    ...(found["description"] === undefined ? {} : { description: found["description"] }),
  };
}

function typeName(document: JsonFields, value: unknown): string {
  const schema = resolve(document, value);
  if (schema["const"] !== undefined) return JSON.stringify(schema["const"]);
  if (Array.isArray(schema["enum"]))
    return schema["enum"]
      .map((each) => JSON.stringify(each))
      .slice(0, 12)
      .join(", ");
  const choices = entriesOf(schema["anyOf"] ?? schema["oneOf"]);
  if (choices.length > 0)
    return [...new Set(choices.map((choice) => typeName(document, choice)))].join(" or ");
  if (schema["type"] === "array") return `array of ${typeName(document, schema["items"])}`;
  return Array.isArray(schema["type"])
    ? schema["type"].join(" or ")
    : text(schema["type"]) || "any";
}

/** Returns the fields of a schema as rows, with those of nested objects below them. */
function fieldRows(
  document: JsonFields,
  value: unknown,
  options: { prefix: string; depth: number },
): string[][] {
  const schema = resolve(document, value);
  const { prefix, depth } = options;
  const choices = entriesOf(schema["anyOf"] ?? schema["oneOf"] ?? schema["allOf"]).map((each) =>
    resolve(document, each),
  );
  const required = entriesOf(schema["required"]);
  const own = Object.entries(fieldsOf(schema["properties"])).flatMap(([name, inner]) => {
    const field = resolve(document, inner);
    const isRequired = required.includes(name) ? "yes" : "";
    const line = [
      `\`${prefix}${name}\``,
      typeName(document, field),
      isRequired,
      text(field["description"]),
    ];
    if (depth === 0) return [line];
    const items = field["type"] === "array" ? field["items"] : undefined;
    const below = `${prefix}${name}${items === undefined ? "" : "[]"}.`;
    return [line, ...fieldRows(document, items ?? field, { prefix: below, depth: depth - 1 })];
  });
  const first = choices.find((each) => each["properties"] !== undefined);
  return first === undefined ? own : [...own, ...fieldRows(document, first, options)];
}

/** Returns an example value of a schema, with its required fields only. */
function sample(document: JsonFields, value: unknown, depth = 0): unknown {
  const schema = resolve(document, value);
  if (schema["example"] !== undefined) return schema["example"];
  if (Array.isArray(schema["examples"]) && schema["examples"].length > 0)
    return schema["examples"][0];
  if (schema["const"] !== undefined) return schema["const"];
  if (Array.isArray(schema["enum"])) return schema["enum"][0];
  const [choice] = entriesOf(schema["anyOf"] ?? schema["oneOf"] ?? schema["allOf"]);
  if (choice !== undefined && schema["properties"] === undefined)
    return sample(document, choice, depth);
  const type = entriesOf(schema["type"])[0] ?? schema["type"];
  if (type === "array") return depth > 3 ? [] : [sample(document, schema["items"], depth + 1)];
  if (type === "number" || type === "integer")
    return typeof schema["minimum"] === "number" ? Math.max(1, schema["minimum"]) : 1;
  if (type === "boolean") return true;
  if (type !== "object") return schema["format"] === "date-time" ? "2027-01-31T00:00:00Z" : "text";
  const required = entriesOf(schema["required"]);
  return Object.fromEntries(
    Object.entries(fieldsOf(schema["properties"]))
      .filter(([name]) => required.includes(name))
      .map(([name, inner]) => [name, sample(document, inner, depth + 1)]),
  );
}

const isEmpty = (value: unknown): boolean => Object.keys(fieldsOf(value)).length === 0;

/** Returns the example of a request or answer: the document's own, or one from the schema. */
function exampleOf(document: JsonFields, content: unknown): unknown {
  const media = fieldsOf(fieldsOf(content)["application/json"]);
  if (media["example"] !== undefined) return media["example"];
  const [named] = Object.values(fieldsOf(media["examples"]));
  if (named !== undefined) return resolve(document, named)["value"];
  return isEmpty(media["schema"]) ? undefined : sample(document, media["schema"]);
}

const quoted = (value: unknown): string => JSON.stringify(value).replaceAll("'", "'\\''");
const fenced = (language: string, ...lines: readonly string[]): string =>
  `\`\`\`${language}\n${lines.join("\n")}\n\`\`\``;

/** A header of a snippet: its value ends with a variable of the environment. */
interface SentHeader {
  name: string;
  value: string;
  variable: string;
}

/**
 * Returns the headers that carry a credential of these families. Where only a session will do, it
 * is the cookie of a browser that has signed in, and changes name the page's own origin.
 */
function credentialOf(families: readonly string[], verb: string): SentHeader[] {
  if (families.length === 0) return [];
  const bearer = (variable: string): SentHeader[] => [
    { name: "Authorization", value: "Bearer ", variable },
  ];
  if (families.includes("llmKey")) return bearer("SWITCHYARD_KEY");
  if (families.includes("managementKey")) return bearer("SWITCHYARD_MANAGEMENT_KEY");
  const cookie = {
    name: "Cookie",
    value: `${brand.sessionCookie}=`,
    variable: "SWITCHYARD_SESSION",
  };
  const origin = { name: "Origin", value: "", variable: "SWITCHYARD_URL" };
  return verb === "GET" ? [cookie] : [cookie, origin];
}

/**
 * Returns a path with a name in capitals for each parameter, by what it is of: `/keys/{hash}`
 * becomes `/keys/KEY_HASH`.
 */
const withNames = (path: string): string =>
  path
    .replace("{owner}/{model}", "sandbox/chat:free")
    .replaceAll(/(?:([a-z-]+)\/)?\{(\w+)\}/g, (_, before: string | undefined, name: string) => {
      const owner = before?.replace(/(?<=tch|ss|ias)es$|s$/, "");
      const isPlain = owner === undefined || name.includes("_") || name === owner;
      const full = isPlain ? name : `${owner}_${name}`;
      return `${before === undefined ? "" : `${before}/`}${full.replaceAll("-", "_").toUpperCase()}`;
    });

/** Returns the query of the parameters that a request must have, with a name in capitals for each. */
function requiredQuery(parameters: readonly JsonFields[]): string {
  const names = parameters
    .filter((each) => each["in"] === "query" && each["required"] === true)
    .map((each) => text(each["name"]));
  const query = names.map(
    (name) => `${name}=${name === "id" ? "GENERATION_ID" : name.toUpperCase()}`,
  );
  return query.length === 0 ? "" : `?${query.join("&")}`;
}

/** Returns the same request in curl, TypeScript and Python. */
function snippets({
  method,
  url,
  body,
  families,
}: {
  method: string;
  url: string;
  body: unknown;
  families: readonly string[];
}): string {
  const verb = method.toUpperCase();
  const json = body === undefined ? undefined : JSON.stringify(body);
  const sent = credentialOf(families, verb);
  const curl = [
    `curl ${verb === "GET" ? "" : `-X ${verb} `}"${url}"`,
    ...sent.map(({ name, value, variable }) => `-H "${name}: ${value}$${variable}"`),
    ...(json === undefined ? [] : [`-H "Content-Type: application/json" -d '${quoted(body)}'`]),
  ];
  const headers = [
    ...sent.map(
      ({ name, value, variable }) =>
        `${name.toLowerCase()}: \`${value}\${process.env.${variable}}\``,
    ),
    ...(json === undefined ? [] : [`"content-type": "application/json"`]),
  ];
  const script = [
    `const response = await fetch("${url}", {`,
    `  method: "${verb}", headers: { ${headers.join(", ")} },`,
    ...(json === undefined ? [] : [`  body: JSON.stringify(${json}),`]),
    "});",
    "console.log(response.status, await response.text());",
  ];
  const python = [
    "import json, os, urllib.request",
    "",
    `request = urllib.request.Request("${url}", method="${verb}")`,
    ...sent.map(
      ({ name, value, variable }) =>
        `request.add_header("${name}", "${value}" + os.environ["${variable}"])`,
    ),
    ...(json === undefined
      ? []
      : [
          `request.add_header("Content-Type", "application/json")`,
          `request.data = ${JSON.stringify(json)}.encode()`,
        ]),
    "print(urllib.request.urlopen(request).read().decode())",
  ];
  return [
    fenced("sh", curl.join(" \\\n  ")),
    fenced("ts", ...script),
    fenced("python", ...python),
  ].join("\n\n");
}

const formOf = (content: unknown): JsonFields => fieldsOf(fieldsOf(content)["multipart/form-data"]);

/** Whether an operation takes a form alone, which carries files. */
const hasForm = (content: unknown): boolean =>
  fieldsOf(content)["application/json"] === undefined && !isEmpty(formOf(content));

const formExample = (content: unknown): JsonFields => fieldsOf(formOf(content)["example"]);

/** Returns a form in curl; a value that begins with `@` is a file of the reader's. */
const formSnippet = ({
  url,
  form,
  families,
}: {
  url: string;
  form: JsonFields;
  families: readonly string[];
}): string =>
  fenced(
    "sh",
    [
      `curl "${url}"`,
      ...credentialOf(families, "POST").map(
        ({ name, value, variable }) => `-H "${name}: ${value}$${variable}"`,
      ),
      ...Object.entries(form).map(([name, value]) => `-F ${name}=${text(value)}`),
    ].join(" \\\n  "),
  );

interface Operation {
  /** The start of the path. */
  base: string;
  path: string;
  method: string;
  operation: JsonFields;
}

const credentials: Readonly<Record<string, string>> = {
  llmKey: "an LLM key",
  managementKey: "a management key",
  session: "a session",
  anthropicKey: "an LLM key as x-api-key",
};

const familiesOf = (operation: JsonFields): string[] =>
  entriesOf(operation["security"]).flatMap((each) => Object.keys(fieldsOf(each)));

function credentialText(operation: JsonFields): string {
  const families = familiesOf(operation);
  if (families.length === 0) return "No credential is needed.";
  const scope = text(operation["x-required-scope"]);
  const link =
    scope === "" ? "" : `, scope [\`${scope}\`](/docs/reference/scopes#${headingId(scope)})`;
  return `Credential: ${[...new Set(families)].map((each) => credentials[each] ?? each).join(" or ")}${link}.`;
}

const fieldHeadings = ["field", "type", "required", "meaning"];

/** Returns what a reader needs to send an operation, as Markdown below its name. */
function operationText(document: JsonFields, { base, path, method, operation }: Operation): string {
  const parameters = entriesOf(operation["parameters"]).map((each) => resolve(document, each));
  const parameterRows = parameters.map((each) => [
    `\`${text(each["name"])}\` (${text(each["in"])})`,
    typeName(document, each["schema"]),
    each["required"] === true ? "yes" : "",
    text(each["description"]),
  ]);
  const schemaOf = (content: unknown): unknown =>
    fieldsOf(fieldsOf(content)["application/json"])["schema"];
  const content = resolve(document, operation["requestBody"])["content"];
  const [status, success] = Object.entries(fieldsOf(operation["responses"])).find(([code]) =>
    code.startsWith("2"),
  ) ?? ["", undefined];
  const answer = resolve(document, success)["content"];
  const shown = exampleOf(document, answer);
  const url = `${base}${withNames(path)}${requiredQuery(parameters)}`;
  const part = (title: string, rows: string[][]): string =>
    rows.length === 0 ? "" : `### ${title}\n\n${table(fieldHeadings, rows)}`;
  return [
    text(operation["description"]),
    credentialText(operation),
    part("Parameters", parameterRows),
    part("Body", fieldRows(document, schemaOf(content), { prefix: "", depth: 1 })),
    hasForm(content)
      ? formSnippet({ url, form: formExample(content), families: familiesOf(operation) })
      : snippets({
          method,
          url,
          body: exampleOf(document, content),
          families: familiesOf(operation),
        }),
    part(`Answer ${status}`, fieldRows(document, schemaOf(answer), { prefix: "", depth: 1 })),
    shown === undefined || isEmpty(shown) ? "" : fenced("json", JSON.stringify(shown, null, 2)),
  ]
    .filter((each) => each !== "")
    .join("\n\n");
}

/** What the form of an operation's page needs to send it as the person who is signed in. */
interface Trial {
  method: string;
  /** The path with its parameters in braces, such as `/api/v1/keys/{hash}`. */
  path: string;
  /** The parameters of the path and the query. */
  parameters: readonly { name: string; in: string; required: boolean; example: string }[];
  /** An example of the body; null where the operation takes none. */
  body: unknown;
  /** Whether the request carries the person's playground key, or the session alone. */
  credential: "key" | "session";
  /** Whether the request changes or deletes something, which the page asks about first. */
  changes: boolean;
}

/** The tag of the operations that call models. */
const inferenceTag = "Inference";

/** Returns how a browser may send an operation; undefined where a session is of no use for it. */
function trialOf(
  document: JsonFields,
  { base, path, method, operation }: Operation,
): Trial | undefined {
  const families = familiesOf(operation);
  const verb = method.toUpperCase();
  const content = resolve(document, operation["requestBody"])["content"];
  const isOpen = families.length === 0;
  const takesKey = families.includes("llmKey") && !families.includes("session");
  const callsModels = takesKey && entriesOf(operation["tags"]).includes(inferenceTag);
  const isOther = content !== undefined && fieldsOf(content)["application/json"] === undefined;
  if (isOther || fieldsOf(operation["responses"])["101"] !== undefined) return undefined;
  if (entriesOf(operation["tags"]).includes("Signing in")) return undefined;
  if (!isOpen && !takesKey && !families.includes("session")) return undefined;
  // An operation for LLM keys is sent with the playground key, which may read and call models.
  if (takesKey && verb !== "GET" && !callsModels) return undefined;
  return {
    method: verb,
    path: `${new URL(base).pathname.replace(/\/$/, "")}${path}`,
    parameters: entriesOf(operation["parameters"])
      .map((each) => resolve(document, each))
      .filter((each) => each["in"] === "path" || each["in"] === "query")
      .map((each) => ({
        name: text(each["name"]),
        in: text(each["in"]),
        required: each["required"] === true,
        example: parameterExample(document, each),
      })),
    body: content === undefined ? null : (exampleOf(document, content) ?? {}),
    credential: takesKey ? "key" : "session",
    changes: verb !== "GET" && !callsModels,
  };
}

/** Returns the example of a parameter that a reader can send as it is; empty where only they know. */
function parameterExample(document: JsonFields, parameter: JsonFields): string {
  const example = parameter["example"] ?? resolve(document, parameter["schema"])["example"];
  return typeof example === "string" || typeof example === "number" ? String(example) : "";
}

/** A page of one operation. */
export interface OperationPage {
  /** Its address below `/docs/api/`. */
  slug: string;
  /** The method and path, such as `POST /keys`. */
  name: string;
  method: string;
  path: string;
  /** What it does, in one line. */
  title: string;
  markdown: string;
  trial: Trial | undefined;
}

/** A page of the operations of one tag. */
export interface TagPage extends PageEntry {
  /** Every operation in full, for agents. */
  markdown: string;
  /** The list of operations, each with a link to its page, for people. */
  overview: string;
  operations: readonly OperationPage[];
}

const slugOf = (tag: string): string => `api-${tag.toLowerCase().replaceAll(/[^a-z]+/g, "-")}`;

/** Returns the address of an operation: `POST /keys/{hash}/rotate` is `post-keys-hash-rotate`. */
const operationSlug = (name: string): string =>
  name
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replaceAll(/^-|-$/g, "");

function operationPage(document: JsonFields, found: Operation): OperationPage {
  const { method, path, operation } = found;
  const name = `${method.toUpperCase()} ${path}`;
  const title = text(operation["summary"]).replace(/\.$/, "") || name;
  return {
    slug: operationSlug(name),
    name,
    method: method.toUpperCase(),
    path,
    title,
    markdown: `# ${title}\n\n\`${name}\`\n\n${operationText(document, found).replaceAll(/^### /gm, "## ")}\n`,
    trial: trialOf(document, found),
  };
}

function tagPage(document: JsonFields, tag: string, found: readonly Operation[]): TagPage {
  const title = `API: ${tag}`;
  const intro =
    "Paths work below `/api/v1` and `/v1`. Replace names in capitals, such as `KEY_HASH`; examples use models of the sandbox, " +
    "which need no account. Programs read [OpenAPI](/api/v1/openapi.json).";
  const operations = found.map((each) => operationPage(document, each));
  const inFull = found.map((each, index) => {
    const { name = "" } = operations[index] ?? {};
    return `## ${name}\n\n${text(each.operation["summary"])}\n\n${operationText(document, each)}`;
  });
  const links = operations.map(
    ({ slug, name, title: does }) => `- [${does}](/docs/api/${slug}) \`${name}\``,
  );
  return {
    slug: slugOf(tag),
    title,
    label: tag,
    markdown: `# ${title}\n\n${intro}\n\n${inFull.join("\n\n")}\n`,
    overview: `# ${title}\n\n${intro}\n\n${links.join("\n")}\n`,
    operations,
  };
}

/**
 * Returns a page for each tag of the OpenAPI document, with a page for every operation except pages
 * for browsers.
 */
export function apiPages(document: JsonFields, publicUrl: string): TagPage[] {
  const serverOf = (value: unknown): string | undefined =>
    text(fieldsOf(entriesOf(value)[0])["url"]) || undefined;
  const byTag = new Map<string, Operation[]>();
  for (const [path, methods] of Object.entries(fieldsOf(document["paths"]))) {
    const base =
      serverOf(fieldsOf(methods)["servers"]) ?? serverOf(document["servers"]) ?? publicUrl;
    for (const [method, operation] of Object.entries(fieldsOf(methods))) {
      const tag = text(entriesOf(fieldsOf(operation)["tags"])[0]);
      if (!/^(?:get|post|patch|put|delete)$/.test(method) || tag === "Pages") continue;
      byTag.set(tag, [
        ...(byTag.get(tag) ?? []),
        { base, path, method, operation: fieldsOf(operation) },
      ]);
    }
  }
  return [...byTag].map(([tag, found]) => tagPage(document, tag, found));
}

const row = (cells: readonly string[]): string =>
  `| ${cells.map((cell) => cell.replaceAll("|", "\\|").replaceAll("\n", " ")).join(" | ")} |`;

/** Returns a Markdown table; bars within cells are escaped. */
export const table = (headings: readonly string[], rows: readonly (readonly string[])[]): string =>
  [headings, headings.map(() => "---"), ...rows].map(row).join("\n");
