import type { JsonObject, JsonValue } from "../../../canonical/json.ts";
import { asArray } from "../../shared/wire-fields.ts";

/**
 * Returns a schema whose listed values have their type beside them, one apart from null: values of
 * several types are forms of one each, and a value of no type that the schema allows goes.
 */
export function withTypedValues(schema: JsonObject): JsonObject {
  const { enum: listed, type, ...rest } = schema;
  const values = asArray(listed);
  if (values === undefined) return schema;
  const allowed = type === undefined ? undefined : [type].flat();
  const typeOf = typesOf(values, allowed);
  const kept = values.filter((value) => typeOf(value) !== undefined);
  const types = [...new Set(kept.map(typeOf))].filter((one) => one !== undefined);
  const [first, ...others] = types.filter((one) => one !== "null");
  if (first === undefined)
    return types.length === 0
      ? { ...rest, ...(type !== undefined && { type }) }
      : { ...rest, type: "null", enum: kept };
  if (others.length === 0)
    return { ...rest, type: types.length === 1 ? first : [first, "null"], enum: kept };
  const anyOf = types.map((one) => ({
    type: one,
    enum: kept.filter((value) => typeOf(value) === one),
  }));
  return { ...rest, anyOf };
}

/** Returns what names the type of each value; undefined for values that are not allowed, or no plain ones. */
function typesOf(
  values: readonly JsonValue[],
  allowed: readonly JsonValue[] | undefined,
): (value: JsonValue) => string | undefined {
  const isWhole = values.every((value) => typeof value !== "number" || Number.isInteger(value));
  const numbers = (allowed?.includes("number") ?? !isWhole) ? "number" : "integer";
  return (value) => {
    const type = value === null ? "null" : typeof value === "number" ? numbers : typeof value;
    if (type === "object" || (type === "integer" && !Number.isInteger(value))) return undefined;
    return allowed === undefined || allowed.includes(type) ? type : undefined;
  };
}
