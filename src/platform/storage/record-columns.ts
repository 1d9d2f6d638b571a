/** How the values of a field are stored: as they are, an amount as a number, 0 or 1, or JSON. */
type Form = "plain" | "nano" | "flag" | "json";

type FormOf<Value> = Value extends bigint
  ? "nano"
  : Value extends boolean
    ? "flag"
    : Value extends string | number
      ? "plain"
      : "json";

/** What a column holds in each form; Postgres gives large integers as bigint. */
interface StoredAs<Value> {
  plain: Value;
  nano: number | bigint;
  flag: number;
  json: string;
}

/** The name of a field's column: `created_at_ms` of `createdAtMs`. */
type ColumnName<Field extends string> = Field extends `${infer First}${infer Rest}`
  ? `${First extends Lowercase<First> ? First : `_${Lowercase<First>}`}${ColumnName<Rest>}`
  : "";

/** The row that stores a record: a column for each field, null where the field may be absent. */
export type RowOf<Value> = {
  [Field in keyof Value & string as ColumnName<Field>]-?:
    | StoredAs<NonNullable<Value[Field]>>[FormOf<NonNullable<Value[Field]>>]
    | (null extends Value[Field] ? null : never)
    | (undefined extends Value[Field] ? null : never);
};

/** The form of each field. `?` marks those that are absent, instead of null, where their column is. */
type FormsOf<Value> = {
  [Field in keyof Value]-?: undefined extends Value[Field]
    ? `${FormOf<NonNullable<Value[Field]>>}?`
    : FormOf<NonNullable<Value[Field]>>;
};

const codecs: Record<Form, { read(stored: unknown): unknown; write(value: unknown): unknown }> = {
  plain: { read: (stored) => stored, write: (value) => value },
  nano: { read: (stored) => BigInt(stored as number | bigint), write: Number },
  flag: { read: (stored) => stored === 1, write: (value) => (value === true ? 1 : 0) },
  json: { read: (stored) => JSON.parse(stored as string), write: JSON.stringify },
};

/**
 * Returns how records are read from rows and written to them, by the form of each field. Fields with
 * another form are left out of `Value`, and added by the store.
 */
export function recordColumns<Value extends object>(
  forms: FormsOf<Value>,
): { fromRow(row: RowOf<Value>): Value; rowOf(record: Value): RowOf<Value> } {
  const columns = Object.entries<string>(forms as Record<string, string>).map(([field, form]) => ({
    field,
    column: field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
    isOptional: form.endsWith("?"),
    codec: codecs[form.replace("?", "") as Form],
  }));
  return {
    fromRow(row) {
      const record: Record<string, unknown> = {};
      for (const { field, column, isOptional, codec } of columns) {
        const stored = (row as Record<string, unknown>)[column];
        if (stored !== null) record[field] = codec.read(stored);
        else if (!isOptional) record[field] = null;
      }
      return record as Value;
    },
    rowOf(record) {
      const row: Record<string, unknown> = {};
      for (const { field, column, codec } of columns) {
        const value = (record as Record<string, unknown>)[field];
        row[column] = value === null || value === undefined ? null : codec.write(value);
      }
      return row as RowOf<Value>;
    },
  };
}
