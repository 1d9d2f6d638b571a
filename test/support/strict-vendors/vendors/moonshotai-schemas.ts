import { fieldsOf, functionsOf, listOf, schemasIn } from "../reading.ts";
import { type Fields, rulesOf, type VendorRequest, type VendorRule } from "../rule.ts";
import { ask, chatTool, eitherOf, schemaOf } from "../samples.ts";

/** Moonshot's form of a refusal. */
export const moonshotError = ({ message }: { message: string }): Fields => ({
  error: { message, type: "invalid_request_error" },
});

const isSchema = (value: unknown): boolean => typeof value === "object" && value !== null;

/** Returns a schema with those within it that Moonshot's validator looks into. */
function checkedIn(schema: unknown): Fields[] {
  const fields = fieldsOf(schema);
  const inner = [
    fields["items"],
    fields["additionalProperties"],
    ...listOf(fields["anyOf"]),
    ...Object.values(fieldsOf(fields["properties"])),
    ...Object.values(fieldsOf(fields["$defs"])),
  ];
  return [fields, ...inner.filter(isSchema).flatMap(checkedIn)];
}

/** Returns a condition on the schemas of a request's functions. */
const someSchema =
  (isRefused: (schema: Fields) => boolean) =>
  (request: VendorRequest): boolean =>
    functionsOf(request).some(({ parameters }) => checkedIn(parameters).some(isRefused));

const words = (details: string): string =>
  `Invalid request: tools.function.parameters is not a valid moonshot flavored json schema, details: <${details}>`;
const tool = (parameters: Fields): VendorRule["violates"] => ({
  model: "kimi-k2.5",
  body: ask({ tools: [chatTool({ parameters })] }),
});

/** What Moonshot refuses about the schemas of functions. */
export const moonshotSchemaRules = rulesOf(
  { vendor: "moonshotai", endpoint: "chat", body: moonshotError },
  [
    {
      id: "ref-siblings",
      when: (request) =>
        functionsOf(request).some(({ parameters }) =>
          schemasIn(parameters).some(
            (schema) => schema["$ref"] !== undefined && Object.keys(schema).length > 1,
          ),
        ),
      says: words(
        "At path 'properties.value': conflicting keywords found after $ref expansion: description",
      ),
      source: "github.com/MoonshotAI/kimi-cli/issues/2061 (2026-04-24)",
      violates: tool(
        schemaOf(
          { $ref: "#/$defs/city", description: "Where." },
          { $defs: { city: { type: "string" } } },
        ),
      ),
    },
    {
      id: "ref-elsewhere",
      when: someSchema(
        ({ $ref: ref }) => typeof ref === "string" && !/^#(?:\/\$defs\/[^/]+)?$/.test(ref),
      ),
      says: words("At path 'properties.value.$ref': references must start with #/$defs/"),
      source: "github.com/CommandCodeAI/command-code/issues/594 (2026-07-27)",
      violates: tool(
        schemaOf({ $ref: "#/definitions/city" }, { definitions: { city: { type: "string" } } }),
      ),
    },
    {
      id: "tuple-items",
      when: someSchema(
        ({ items }) => items !== undefined && (Array.isArray(items) || !isSchema(items)),
      ),
      says: words("At path 'properties.value.items': items must be an object"),
      source: "github.com/sst/opencode, provider/transform.ts (2026-11)",
      violates: tool(schemaOf({ type: "array", items: [{ type: "string" }] })),
    },
    {
      id: "switch-for-a-schema",
      when: someSchema(({ properties }) =>
        Object.values(fieldsOf(properties)).some((value) => !isSchema(value)),
      ),
      says: words("At path 'properties': property schema for 'value' must be an object"),
      source: "github.com/can1357/oh-my-pi/issues/5952 (2026-07-18)",
      violates: tool({ type: "object", properties: { value: true } }),
    },
    {
      id: "type-beside-forms",
      when: someSchema(({ type, anyOf }) => type !== undefined && anyOf !== undefined),
      says: words(
        "At path 'root': when using anyOf, type should be defined in anyOf items instead of the parent schema",
      ),
      source:
        "github.com/MoonshotAI/kimi-cli/issues/2531, anomalyco/opencode/issues/37496 (2026-07-22)",
      violates: tool(eitherOf),
    },
    {
      id: "top-without-type",
      when: (request) =>
        functionsOf(request).some(
          ({ parameters }) => parameters !== undefined && fieldsOf(parameters)["type"] !== "object",
        ),
      says: 'Invalid request: tools.function.parameters.type is required and must be "object"',
      source: "github.com/Hmbown/Codewhale/pull/4613 (2026-07-20)",
      violates: tool({ properties: { value: { type: "string" } } }),
    },
    {
      id: "values-without-type",
      when: someSchema(({ type, enum: values }) => type === undefined && values !== undefined),
      says: words("At path 'properties.value': type is not defined"),
      source: "github.com/anomalyco/opencode/issues/40127 (2026-08-02)",
      violates: tool(schemaOf({ enum: ["text", "raw"] })),
    },
    {
      id: "values-of-another-type",
      when: someSchema(({ type, enum: values }) => {
        const types = [type].flat();
        return (
          Array.isArray(values) &&
          (types.length > 2 ||
            (types.length === 2 && !types.includes("null")) ||
            values.some((value) => value === null && !types.includes("null")))
        );
      }),
      says: words(
        "At path 'properties.value.enum': enum value (<nil>) does not match any type in [string]",
      ),
      source: "github.com/MoonshotAI/walle, keyword_validators.go (2026-06-29)",
      violates: tool(schemaOf({ type: "string", enum: ["text", null] })),
    },
    {
      id: "required-is-a-switch",
      when: someSchema(({ required }) => required !== undefined && !Array.isArray(required)),
      says: words("At path 'properties.value.required': required must be an array"),
      source:
        "github.com/MoonshotAI/walle, keyword_validators.go, NousResearch/hermes-agent/issues/66835 (2026-07-18)",
      violates: tool(schemaOf({ type: "string", required: true })),
    },
    {
      id: "required-and-not-named",
      when: someSchema(
        ({ required, properties }) =>
          Array.isArray(required) &&
          required.some((name) => !(String(name) in fieldsOf(properties))),
      ),
      says: words("At path 'required': required property 'zip' is not defined in properties"),
      source: "github.com/MoonshotAI/walle, anomalyco/opencode/pull/37625 (2026-07-18)",
      violates: tool(schemaOf({ type: "string" }, { required: ["value", "zip"] })),
    },
  ],
);
