import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import type { Bodies } from "../../lib/api-types.ts";
import { Field, Input, Select, TextArea, numberOf } from "../../ui/fields.tsx";
import { Form } from "../../ui/form.tsx";
import { type McpServer, changeServer, createServer } from "./api.ts";

const auths = [
  ["none", "none"],
  ["headers", "headers that are sent with each request"],
  ["oauth_per_person", "OAuth, each person with their own access"],
  ["oauth", "OAuth, one access for all"],
] as const;
type AuthType = (typeof auths)[number][0];
type Auth = NonNullable<Bodies["POST /mcp-servers"]["auth"]>;

/** Reads headers from lines of `Name: value`. */
const headersOf = (text: string): Record<string, string> =>
  Object.fromEntries(
    text.split("\n").flatMap((line) => {
      const place = line.indexOf(":");
      return place < 1 ? [] : [[line.slice(0, place).trim(), line.slice(place + 1).trim()]];
    }),
  );

/** Reads names from a text with commas or lines; none means all tools. */
const namesOf = (text: string): string[] | null => {
  const names = text
    .split(/[\n,]/)
    .map((name) => name.trim())
    .filter((name) => name !== "");
  return names.length === 0 ? null : names;
};

/** Returns the credentials to send; undefined keeps those that are stored. */
function authOf(
  type: AuthType,
  { headers, stored }: { headers: string; stored: McpServer | undefined },
): Auth | undefined {
  if (type === "headers")
    return headers.trim() === "" && stored?.auth.type === "headers"
      ? undefined
      : { type, headers: headersOf(headers) };
  return stored?.auth.type === type ? undefined : { type };
}

/** Registers a server, or changes one. */
export function ServerForm({
  stored,
  onSaved,
}: {
  stored?: McpServer | undefined;
  onSaved: (server: McpServer) => void;
}) {
  const [name, setName] = useState(stored?.name ?? "");
  const [url, setUrl] = useState(stored?.url ?? "");
  const [type, setType] = useState<AuthType>((stored?.auth.type as AuthType) ?? "none");
  const [headers, setHeaders] = useState("");
  const [tools, setTools] = useState(stored?.allowed_tools?.join(", ") ?? "");
  const [price, setPrice] = useState(stored === undefined ? "" : String(stored.price_per_call));
  const save = useMutation({
    meta: { done: "MCP server saved" },
    mutationFn: () => {
      const auth = authOf(type, { headers, stored });
      const body = {
        url,
        allowed_tools: namesOf(tools),
        price_per_call: numberOf(price) ?? 0,
        ...(name === "" ? {} : { name }),
        ...(auth === undefined ? {} : { auth }),
      };
      return stored === undefined ? createServer(body) : changeServer({ ...body, id: stored.id });
    },
    onSuccess: onSaved,
  });
  return (
    <Form
      action={stored === undefined ? "Add server" : "Save server"}
      work={save}
      onSubmit={() => save.mutate()}
    >
      <Field param="name" label="Name">
        {(id) => (
          <Input
            id={id}
            value={name}
            required={stored === undefined}
            maxLength={200}
            onChange={({ target }) => setName(target.value)}
          />
        )}
      </Field>
      <Field param="url" label="URL" hint="The address of the server over Streamable HTTP.">
        {(id) => (
          <Input
            id={id}
            type="url"
            required
            value={url}
            onChange={({ target }) => setUrl(target.value)}
          />
        )}
      </Field>
      <Field label="Access">
        {(id) => <Select id={id} value={type} options={auths} onChange={setType} />}
      </Field>
      {type === "headers" ? (
        <Field
          param="auth"
          label="Headers"
          hint="One a line, such as Authorization: Bearer and the token. They are stored encrypted and never shown again; empty keeps those that are stored."
        >
          {(id) => (
            <TextArea
              id={id}
              rows={3}
              value={headers}
              onChange={({ target }) => setHeaders(target.value)}
            />
          )}
        </Field>
      ) : null}
      <Field
        param="allowed_tools"
        label="Allowed tools"
        hint="Names with commas between them. Empty means all."
      >
        {(id) => <Input id={id} value={tools} onChange={({ target }) => setTools(target.value)} />}
      </Field>
      <Field param="price_per_call" label="Price of a call in USD">
        {(id) => (
          <Input
            id={id}
            type="number"
            min="0"
            step="any"
            value={price}
            onChange={({ target }) => setPrice(target.value)}
          />
        )}
      </Field>
    </Form>
  );
}
